#!/usr/bin/env python3
"""enter.py [--aarch64] ROOT COMMAND...: runs a command in the folder ROOT as the phone's user 2000, in a user namespace of its own.

Where this machine gives one user only (no root), that one is called 2000 inside; else the users are those outside. With --aarch64 programs of
that machine run too, through qemu-aarch64-static (qemu-user-static): the kernel's table of foreign formats is a user namespace's own since
Linux 6.7, so that nothing of the system changes.
"""

import ctypes
import os
import shutil
import sys

NEWNS, NEWUSER = 0x00020000, 0x10000000
SHELL = 2000
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


def unshare(maps):
    """A new user namespace. Only somebody outside may say who is who in it: a child that stays there."""
    me, (inside, said) = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(said)
        os.read(inside, 1)
        for name, text in maps.items():
            with open(f"/proc/{me}/{name}", "w") as file:
                file.write(text)
        os._exit(0)
    check(libc.unshare(NEWUSER | NEWNS), "a user namespace")
    os.write(said, b"x")
    if os.waitpid(helper, 0)[1] != 0:
        sys.exit("a user namespace: its users can't be set")
    os.close(said)
    os.close(inside)


def formats(qemu):
    """ELF, 64 bits, little end first, a program or a shared object (type 2 or 3), machine 183. F: the interpreter is opened now."""
    place = "/proc/sys/fs/binfmt_misc"
    if os.path.exists(f"{place}/aarch64"):
        return
    check(libc.mount(b"none", place.encode(), b"binfmt_misc", 0, None), "binfmt_misc in a user namespace")
    magic = rb"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    mask = rb"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    with open(f"{place}/register", "wb", buffering=0) as file:
        file.write(b":aarch64:M::" + magic + b":" + mask + b":" + qemu.encode() + b":F")


def main(words):
    aarch64 = words[0] == "--aarch64"
    root, *command = words[aarch64:]
    users = open("/proc/self/uid_map").read().split()[2]
    ids = f"{SHELL} 0 1\n" if users == "1" else f"0 0 {users}\n"
    qemu = shutil.which("qemu-aarch64-static", path="/usr/bin:/usr/local/bin") if aarch64 else None
    if aarch64 and not qemu:
        sys.exit("no qemu-aarch64-static: apt-get install qemu-user-static")
    # With one user the namespace of all of the phone is private already, and only its root may write there.
    if qemu and users == "1":
        formats(qemu)
    unshare({"setgroups": "deny", "uid_map": ids, "gid_map": ids} if users == "1" else {"uid_map": ids, "gid_map": ids})
    if qemu and users != "1":
        formats(qemu)
    os.chroot(root)
    os.chdir("/")
    if users != "1":
        os.setgroups([SHELL])
        os.setresgid(SHELL, SHELL, SHELL)
        os.setresuid(SHELL, SHELL, SHELL)
    # Python's own, which a phone has not.
    os.environ.pop("LC_CTYPE", None)
    os.execv(command[0], command)


main(sys.argv[1:])
