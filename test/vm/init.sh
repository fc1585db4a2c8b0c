#!/bin/busybox sh
# The init of the tests' virtual machine. It runs twice: in the initramfs by busybox, where it mounts the root, and in that
# root with the argument "run". The root is the host's, or Debian's for another processor and in it the host's $checkout:
# read-only over 9p, with a tmpfs above that takes all writes. Any error ends the machine; its last messages are in console.log.
set -e
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

if [ "$1" != run ]; then
  /bin/busybox --install /bin
  mkdir -p /dev /proc /sys /lower /upper /root
  mount -t devtmpfs devtmpfs /dev
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  # shellcheck disable=SC2046
  modprobe -a $(cat /modules)
  mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=524288,ro host /lower
  mount -t tmpfs -o mode=755 tmpfs /upper
  mkdir /upper/files /upper/work
  mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /root
  if [ -n "$checkout" ]; then
    mkdir -p /checkout /upper/checkout /upper/checkout-work "/root$checkout"
    mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=524288,ro checkout /checkout
    mount -t overlay -o lowerdir=/checkout,upperdir=/upper/checkout,workdir=/upper/checkout-work overlay "/root$checkout"
  fi
  for directory in dev proc sys; do mount --move /$directory /root/$directory; done
  mount -t tmpfs -o mode=755 tmpfs /root/run
  mkdir -p /root/run/vm/share /root/lib/modules
  cp /bin/busybox /root/run/vm/modprobe
  cp /init /root/run/vm/init
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288 share /root/run/vm/share
  mount --bind "/root$tree/lib/modules" /root/lib/modules
  exec switch_root /root /bin/sh /run/vm/init run
fi

trap 'echo o >/proc/sysrq-trigger; sleep 60' EXIT
echo /run/vm/modprobe >/proc/sys/kernel/modprobe
echo tests >/proc/sys/kernel/hostname
ln -sfn /proc/self/fd /dev/fd
for link in 0:stdin 1:stdout 2:stderr; do ln -sfn "/proc/self/fd/${link%:*}" "/dev/${link#*:}"; done
mkdir -p /dev/pts /dev/shm /run/lock
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# Modules that nothing loads on demand: tun has no device file before it is loaded, and nobody looks for hardware.
/run/vm/modprobe tun
/run/vm/modprobe virtio_net
ip link set lo up

status=0
sh /run/vm/share/command </dev/null >/dev/vport0p1 2>&1 || status=$?
echo $status >/run/vm/share/status
