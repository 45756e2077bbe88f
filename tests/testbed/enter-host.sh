#!/bin/sh
# The first program of a host, in fresh namespaces: gives it a file system of its own and becomes its sshd.
# usage: enter-host.sh FOLDER NAME     FOLDER/files is laid over /
set -eu
folder=$1 name=$2
mount -t tmpfs -o mode=755,size=2g tmpfs "$folder/mount"
cd "$folder/mount"
mkdir upper work root
cp -a "$folder/files/." upper/
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/upper,workdir=$PWD/work" root
cd root
mount -t proc proc proc
mount -t tmpfs -o mode=755 tmpfs run
mkdir -m 755 run/sshd run/lock
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for node in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 "dev/${node%:*}" c 1 "${node#*:}"
done
mknod -m 666 dev/tty c 5 0
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mkdir -p .outside
pivot_root . .outside
cd /
umount -l /.outside
rmdir /.outside
hostname "$name"
ip link set lo up
exec /usr/sbin/sshd -D -e -f /etc/ssh/bed_config
