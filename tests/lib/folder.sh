# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# folder.sh - where the tests of the command put their files: in memory if there is plenty of it. It does not wait for a
# disk, and ext4 searches long for an inode when many files have just been removed.
# Sourced. Sets TMPDIR for mktemp, unless the caller has.

kib_of() { awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo; }
room_needed_kib=$((6 << 20))
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] && [ "$(kib_of MemAvailable)" -gt $room_needed_kib ] &&
    [ "$(df --output=avail -k /dev/shm | tail -n 1)" -gt $room_needed_kib ]; then
    export TMPDIR=/dev/shm
fi
