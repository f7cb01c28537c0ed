#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# work.sh - does common and unusual file operations on a mounted directory. It runs in the guest and on the host.
#
#   work.sh DIRECTORY CASE [ARGUMENT ...]
#
# It works in its own folder below DIRECTORY and removes the folder if all checks passed. One line reports a failed check.
set -u
bin=$(cd "$(dirname "$0")" && pwd)
fsop=$bin/fsop
top=$1 case=$2
shift 2
umask 022

bad() { echo "$case: $*"; exit 1; }
must() { "$@" || bad "failed: $*"; }
must_not() { if "$@" 2>/dev/null; then bad "succeeded: $*"; fi; }
is() { [ "$1" = "$2" ] || bad "$3: '$1', not '$2'"; }
forget() { must "$fsop" forget "$@"; } # what was read is asked for again

work_tree() { # create, rename, unlink, hard links, directories
    must mkdir a a/b a/b/c
    must_not rmdir a
    must_not mkdir a
    echo one >a/one && echo two >a/b/two || bad "cannot write"
    must mv a/one a/b/c/uno
    is "$(cat a/b/c/uno)" one "after a rename into another folder"
    must mv a/b/c/uno a/b/two
    is "$(cat a/b/two)" one "after a rename over a file"
    must mv a/b a/d
    is "$(cat a/d/two)" one "after the rename of a folder"
    must "$fsop" errno EINVAL rename a a/d/inside
    must mkdir a/empty a/full a/full/x
    must "$fsop" errno ENOTEMPTY rename a/empty a/full
    must "$fsop" errno 0 rename a/full/x a/empty
    must "$fsop" errno EISDIR rename a/d/two a/empty
    must "$fsop" errno ENOTDIR rename a/empty a/d/two
    must "$fsop" errno ENOENT rename a/none a/other
    must "$fsop" errno ENOENT unlink a/none
    must "$fsop" errno ENOTDIR stat a/d/two/x
    must ln a/d/two a/second
    is "$(stat -c '%h %i' a/second)" "2 $(stat -c %i a/d/two)" "links and inode"
    must "$fsop" errno EEXIST link a/d/two a/second
    must "$fsop" errno 0 rename a/d/two a/second # two names of one file: nothing happens
    must [ -e a/d/two ]
    echo more >>a/second || bad "cannot append"
    must rm a/d/two
    is "$(stat -c %h a/second)" 1 "links after an unlink"
    is "$(tr '\n' ' ' <a/second)" "one more " "contents through the other name"
    must_not cat a/d/two
    i=0
    while [ $i -lt 100 ]; do
        must ln a/second a/link$i
        i=$((i + 1))
    done
    is "$(stat -c %h a/second)" 101 "links after a hundred"
    is "$(ls a/d/.. | wc -l)" 104 "names in a folder" # 100 links, second, d, empty, full
    must rm -r a
    must_not ls a
}

work_links() { # symbolic links
    long=$(printf '%4095s' '' | tr ' ' x)
    must ln -s nowhere dangling
    is "$(readlink dangling)" nowhere "a dangling link"
    must_not cat dangling
    must ln -s "$long" long
    is "$(readlink long | tr -d '\n' | wc -c)" 4095 "octets of a long link"
    is "$(readlink long)" "$long" "a long link"
    for n in 1 2 3 4 5 1000 1023 1024 1025; do
        text=$(printf "%${n}s" '' | tr ' ' y)
        must ln -s "$text" "l$n"
        is "$(readlink "l$n")" "$text" "a link of $n octets"
        is "$(stat -c %s "l$n")" "$n" "size of a link of $n octets"
    done
    mkdir d && echo here >d/file && ln -s ../d/file d/relative && ln -s d folder || bad "cannot link"
    is "$(cat folder/relative)" here "through two links"
    must ln -s loop loop
    must "$fsop" errno ELOOP read loop
    must "$fsop" errno EEXIST symlink x dangling
    must rm folder dangling
    must [ -e d/file ]
}

work_many() { # COUNT: a folder "many" of COUNT names, made at the server; and one that changes while it is read
    is "$(find "$top/many" -type f | wc -l)" "$1" "names found"
    must "$fsop" list "$top/many" f "$1" 0
    must mkdir busy
    must "$fsop" names busy f 300
    must "$fsop" busy busy f 300 "${2:-6}"
    must "$fsop" list busy f 300
}

work_big() { # MIB [plain|sync|direct [CHUNK]]: the file stays, for a look from the other side
    must "$fsop" fill "$top/big" 0 $(($1 << 20)) 11 "${2:-plain}" "${3:-1048576}"
    forget "$top/big"
    must "$fsop" check "$top/big" 0 $(($1 << 20)) 11
}

work_sizes() { # [SIZE ...] in each way of writing; else around every threshold
    [ $# != 0 ] || set -- 0 1 2 3 4 5 7 8 1000 3800 3944 3945 3946 3947 3948 3949 4000 4095 4096 4097 8191 8193 \
        65535 65537 262143 262145 1048575 1048576 1048577
    for n; do
        must "$fsop" fill f 0 $n $n
        must "$fsop" fill g 0 $n $n sync
        is "$(stat -c %s f g | tr '\n' ' ')" "$n $n " "sizes"
        must rm -f h
        must mv f h
        forget g h
        must "$fsop" check g 0 $n $n
        must "$fsop" check h 0 $n $n
        must rm g
    done
    must "$fsop" fill d 0 1048576 3 direct 8192
    must "$fsop" check d 0 1048576 3 direct
}

work_data() { # holes, truncation, mappings, O_APPEND, several writers
    must "$fsop" sparse sparse
    must "$fsop" mmap map
    must "$fsop" append log 2 400
    must "$fsop" ranges ranges 3 60
    must "$fsop" fill shorter 0 300000 2
    must truncate -s 100001 shorter
    must "$fsop" check shorter 0 100001 2
    must truncate -s 0 shorter
    is "$(stat -c %s shorter)" 0 "size after truncation"
    must "$fsop" errno EISDIR truncate . 0
    echo x >shorter && "$fsop" errno 0 truncate shorter 5000000000 || bad "cannot grow"
    is "$(stat -c %s shorter)" 5000000000 "size above 4 GiB"
    is "$(tail -c 3 shorter | od -An -tx1 | tr -d ' ')" 000000 "the end of a hole"
}

work_fsx() { # STEPS SEED ...
    steps=$1
    shift
    for seed; do
        must "$bin/fsx" f "$seed" "$steps"
    done
}

work_copy() { # TREE: cp -a, and nothing differs; then a job that makes many small files out of it
    must cp -a "$1" copy
    must diff -r "$1" copy
    list() { (cd "$1" && find . -type f -exec stat -c '%n %A %u %g %s %Y' {} + | sort); }
    is "$(list copy | sha256sum)" "$(list "$1" | sha256sum)" "modes, owners, sizes or times"
    is "$(readlink copy/link)" base/bytes.h "a link"
    must mkdir out
    find copy -name '*.c' | while read -r f; do
        o=out/$(echo "$f" | tr / _).o
        grep -c . "$f" >"$o.tmp" && sha256sum <"$f" >>"$o.tmp" && mv "$o.tmp" "$o" || bad "the job fails at $f"
    done || exit 1
    cat out/*.o >all && [ "$(wc -l <all)" = $((2 * $(find "$1" -name '*.c' | wc -l))) ] || bad "the job made $(wc -l <all) lines"
    must rm -r copy
}

work_attributes() { # modes, owners, times, fifos, figures of the file system
    echo x >f && ln -s f s || bad "cannot write"
    for m in 0 400 644 755 4755 2711 1777 7777; do
        must chmod $m f
        is "$(stat -c %a f)" $m "mode"
    done
    must chown 1000:2000 f
    is "$(stat -c '%u %g' f)" "1000 2000" "owner"
    is "$(stat -c %a f)" 1777 "the mode after a change of owner"
    must chown 4294967294:4000000000 f
    is "$(stat -c '%u %g' f)" "4294967294 4000000000" "a large owner"
    must chown -h 5 s
    is "$(stat -c %u s) $(stat -c %u f)" "5 4294967294" "the owner of a link"
    must "$fsop" times f
    must mkfifo p
    is "$(stat -c %F p)" fifo "type"
    (echo through >p) &
    is "$(cat p)" through "a fifo"
    must mknod c c 1 3
    is "$(stat -c '%F %t %T' c)" "character special file 1 3" "a device"
    mkdir g && chgrp 77 g && chmod 2775 g && mkdir g/sub && echo x >g/file || bad "cannot make"
    is "$(stat -c %g g/sub g/file | tr '\n' ' ')" "77 77 " "a group from its folder"
    must "$fsop" statfs .
    before=$(stat -c %Y.%Z g)
    sleep 1.1
    echo y >g/new
    [ "$(stat -c %Y.%Z g)" != "$before" ] || bad "a new name leaves the times of its folder"
}

work_permissions() { # as others than root; the server squashes no user
    as="$fsop as 1000 1000 $fsop errno"
    chmod 755 . && mkdir -m 700 closed && mkdir -m 777 open && mkdir -m 1777 sticky && mkdir -m 755 mine || bad "cannot make"
    chown 1000:1000 mine && echo secret >closed/f && echo x >private && chmod 600 private || bad "cannot make"
    echo x >readable && echo x >writable && chmod 622 writable && echo x >open/roots && echo x >sticky/roots || bad "cannot make"
    must $as EACCES read private
    must $as EACCES write private
    must $as EACCES access private 4
    must $as 0 read readable
    must $as EACCES write readable
    must $as EACCES read writable
    must $as 0 write writable
    must $as EACCES create file
    must $as EACCES mkdir dir
    must $as EACCES symlink x link
    must $as EACCES mkfifo fifo
    must $as EACCES unlink readable
    must $as EACCES rename readable open/stolen
    must $as EACCES list closed
    must $as EACCES stat closed/f
    must $as EPERM chmod readable 0777
    must $as EPERM chown readable 1000
    must $as EPERM chown mine 0
    must $as EPERM utime readable
    must $as EACCES truncate readable 0
    must $as 0 create open/his
    is "$(stat -c '%u %g' open/his)" "1000 1000" "owner of what he made"
    must $as 0 unlink open/roots
    must $as 0 create sticky/his
    must $as EPERM unlink sticky/roots
    must "$fsop" as 2000 2000 "$fsop" errno EPERM unlink sticky/his
    must $as 0 create mine/f
    must $as 0 chmod mine/f 0
    must $as EACCES read mine/f
    must $as 0 chmod mine/f 0400
    must $as 0 read mine/f
    # A process that has opened a file may still use it after the file's mode has changed (RFC 1813 4.4).
    must "$fsop" as 1000 1000 sh -c 'exec 5>mine/kept; chmod 0 mine/kept; echo still >&5 && exec 5>&-'
    is "$(cat mine/kept)" still "what an owner writes into a file of mode 0"
    chown 0:3000 mine && chmod 770 mine || bad "cannot change"
    must $as EACCES list mine
    must "$fsop" as 1000 3000 "$fsop" errno 0 list mine
}

work_squash() { # root|all|none: as which users root and uid 1000 work
    case $1 in
        none) root=0 user=1000 ;;
        root) root=65534 user=1000 ;;
        all) root=65534 user=65534 ;;
    esac
    must "$fsop" errno 0 create "$top/sq.root"
    must "$fsop" as 1000 1000 "$fsop" errno 0 create "$top/sq.user"
    is "$(stat -c '%u %g' "$top/sq.root")" "$root $root" "owner of root's file"
    is "$(stat -c '%u %g' "$top/sq.user")" "$user $( [ $user = 1000 ] && echo 1000 || echo 65534)" "owner of the user's file"
    if [ $root = 0 ]; then
        must chown 1234 "$top/sq.root"
        must rm "$top/sq.root"
    else
        must "$fsop" errno EPERM chown "$top/sq.root" 1234
    fi
}

work_readonly() { # nothing changes, everything can be read
    for c in "create new" "write file" "mkdir new" "mkfifo new" "unlink file" "rmdir folder" "chmod file 0600" \
        "chown file 5" "truncate file 0" "utime file" "rename file new" "link file new" "symlink x new"; do
        # shellcheck disable=SC2086
        (cd "$top/ro" && must "$fsop" errno EROFS,EACCES $c) || exit # Linux asks with ACCESS before it opens
    done
    is "$(cat "$top/ro/file") $(readlink "$top/ro/link")" "text file" "contents"
    is "$(ls "$top/ro" | tr '\n' ' ')" "file folder link " "names"
}

work_names() { # every octet, every length, depth; open files without a name; races for a name
    for d in odd deep silly excl; do must mkdir $d; done
    must "$fsop" odd odd
    must "$fsop" deep deep 45
    must "$fsop" silly silly
    must "$fsop" excl excl 4 6
}

work_short() { # a little of everything, for another address family or transport
    work_links
    must "$fsop" names . f 40
    must "$fsop" list . f 40
    must "$fsop" fill data 0 3000001 8
    must "$fsop" fill sync 0 70001 8 sync
    forget data sync
    must "$fsop" check data 0 3000001 8
    must "$fsop" check sync 0 70001 8
    must "$fsop" errno ENOENT read nothing
}

# Makes changes that must happen exactly once, even if the transport fails meanwhile. Doing one twice would fail.
work_once() { # COUNT
    i=0
    while [ $i -lt "$1" ]; do
        must "$fsop" errno 0 create f$i
        must "$fsop" errno 0 mkdir d$i
        must "$fsop" errno 0 rename f$i d$i/g
        must "$fsop" errno 0 link d$i/g l$i
        must "$fsop" errno 0 symlink x s$i
        must "$fsop" errno 0 unlink d$i/g
        must "$fsop" errno 0 rmdir d$i
        must "$fsop" errno 0 unlink s$i
        must "$fsop" errno 0 unlink l$i
        i=$((i + 1))
    done
    is "$(ls | wc -l)" 0 "names left"
}

case $case in
    big | squash | readonly) dir=/tmp/work.$$ ;; # a folder of its own would not do
    *) dir=$top/work.$case.$$ ;;
esac
must mkdir "$dir"
must cd "$dir"
"work_$case" "$@"
must cd /
rm -rf "$dir" || bad "cannot remove the folder: $(ls -A "$dir")"
