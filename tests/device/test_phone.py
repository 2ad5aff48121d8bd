"""The test phone itself: what it simulates moves, and what start.sh's commands say happens. Needs root and adb; run by tests/run.sh."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SYS = {"cpu": "/sys/class/thermal/thermal_zone5/temp", "nsp": "/sys/class/thermal/thermal_zone27/temp", "prime": "/sys/devices/system/cpu/cpu7/cpufreq/scaling_cur_freq",
       "limit": "/sys/devices/system/cpu/cpufreq/policy7/scaling_max_freq", "charge": "/sys/class/power_supply/battery/charge_counter",
       "cooling": "/sys/class/thermal/cooling_device7/cur_state", "ddr": "/sys/devices/system/cpu/bus_dcvs/DDR/cur_freq"}
BUSY = "timeout {0} sh -c 'while :; do :; done' & timeout {0} sh -c 'while :; do :; done' & sleep {0}"


class Phone:
    """A phone and an adb server of its own; both end with it."""

    def __init__(self, **env):
        self.home = tempfile.mkdtemp()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.server = f"tcp:localhost:{s.getsockname()[1]}"
        self.process = subprocess.Popen([HERE / "start.sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
        word, _, self.serial = self.process.stdout.readline().strip().partition(" ")
        assert word == "ready", "the phone does not start"
        self.env = {**os.environ, "HOME": self.home, "ADB_SERVER_SOCKET": self.server, "ADB_LOCAL_TRANSPORT_MAX_PORT": "5554", "ANDROID_SERIAL": self.serial}
        hide = '[ ! -d /dev/bus/usb ] || mount -t tmpfs none /dev/bus/usb; exec adb -L "$0" nodaemon server'
        self.adbd = subprocess.Popen(["unshare", "--mount", "sh", "-c", hide, self.server], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            if "connected" in self.adb("connect", self.serial) and self.adb("shell", "echo up") == "up":
                return
            time.sleep(0.1)
        raise AssertionError("adb does not reach the phone")

    def adb(self, *words):
        done = subprocess.run(["adb", *words], env=self.env, capture_output=True, text=True, timeout=60)
        return (done.stdout + done.stderr).strip()

    def sh(self, text):
        return self.adb("shell", text)

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer == f"ok {command}", answer

    def numbers(self):
        return dict(zip(SYS, map(int, self.sh("cat " + " ".join(SYS.values())).split())))

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.adbd.kill()
        self.adbd.wait()
        shutil.rmtree(self.home)


class OnePhone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.phone = Phone()

    @classmethod
    def tearDownClass(cls):
        cls.phone.end()

    def test_load_heats_it_and_empties_the_battery(self):
        self.phone.tell("battery 50 Discharging")
        time.sleep(1)
        before = self.phone.numbers()
        self.phone.sh(BUSY.format(4))
        after = self.phone.numbers()
        self.assertGreater(after["cpu"], before["cpu"] + 1000)
        self.assertLess(after["charge"], before["charge"])
        self.assertGreater(after["prime"], before["prime"])
        # No vendor tool ran.
        self.assertLess(abs(after["nsp"] - before["nsp"]), 1000)

    def test_a_hot_chip_is_slowed_down_and_comes_back(self):
        self.assertEqual(self.phone.numbers()["limit"], 3302400)
        # A step when it is above 95 C: the temperature is set again until one came by.
        deadline = time.monotonic() + 20
        while self.phone.numbers()["cooling"] == 0 and time.monotonic() < deadline:
            self.phone.tell("temp cpu 130")
        hot = self.phone.numbers()
        self.assertGreater(hot["cooling"], 0)
        self.assertLess(hot["limit"], 3302400)
        self.phone.tell("temp 35")
        while self.phone.numbers()["cooling"] > 0 and time.monotonic() < deadline + 20:
            time.sleep(0.5)
        self.assertEqual(self.phone.numbers()["limit"], 3302400)

    def test_the_frameworks_words_follow(self):
        self.phone.tell("battery 17 Charging")
        battery = self.phone.sh("dumpsys battery")
        self.assertIn("  USB powered: true\n", battery)
        self.assertIn("  status: 2\n", battery)
        self.assertIn("  level: 17\n", battery)
        self.phone.tell("temp skin 47")
        self.assertIn("Thermal Status: 2\n", self.phone.sh("dumpsys thermalservice"))
        self.phone.tell("temp 35")
        self.assertIn("Thermal Status: 0\n", self.phone.sh("dumpsys thermalservice"))
        self.assertEqual(self.phone.sh("settings get global low_power; settings get global nothing; getenforce"), "0\nnull\nEnforcing")
        self.assertEqual(self.phone.sh("dumpsys nothing"), "Can't find service: nothing")

    def test_logcat(self):
        self.phone.sh("logcat -c")
        self.phone.tell("log any text; with 'signs'")
        time.sleep(1.1)
        since = self.phone.sh("date -u '+%m-%d %H:%M:%S.000'")
        self.phone.tell("log 4242 E lowmemorykiller: Kill 'x' (4242), uid 2000")
        self.phone.tell("log kernel 0 W audit: avc: denied { read }")
        whole = self.phone.sh("logcat -d").splitlines()
        self.assertEqual(whole[0], "--------- beginning of main")
        self.assertRegex(whole[1], r"^\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  1000  1000 I bench   : any text; with 'signs'$")
        self.assertRegex(whole[2], r" 4242  4242 E lowmemorykiller: Kill 'x' \(4242\), uid 2000$")
        self.assertEqual(whole[3], "--------- switch to kernel")
        recent = self.phone.sh(f"logcat -d -T '{since}'")
        self.assertNotIn("any text", recent)
        self.assertIn("denied { read }", recent)
        self.assertEqual(self.phone.sh("logcat -d -v brief -s lowmemorykiller:W").splitlines()[1], "E/lowmemorykiller( 4242): Kill 'x' (4242), uid 2000")
        self.assertEqual(self.phone.sh("logcat -d -b crash"), "")
        self.assertIn("time format bad", self.phone.sh("logcat -d -T yesterday"))

    def test_a_full_disk(self):
        self.phone.sh("echo kept > /data/local/tmp/kept")
        file = Path(self.phone.home, "mb")
        file.write_bytes(bytes(1 << 20))
        self.phone.tell("full 512")
        self.assertIn("No space left on device", self.phone.adb("push", str(file), "/data/local/tmp/mb"))
        self.assertEqual(self.phone.sh("cat /data/local/tmp/kept"), "kept")
        self.phone.tell("free")
        self.assertIn("1 file pushed", self.phone.adb("push", str(file), "/data/local/tmp/mb"))
        self.phone.tell("full")
        self.assertLessEqual(int(self.phone.sh("df -k /data/local/tmp").split()[-3]), 256)
        self.phone.tell("free")

    def test_a_simulated_value_cannot_be_written_by_the_shell(self):
        self.assertIn("Permission denied", self.phone.sh(f"echo 1 > {SYS['cpu']}"))
        self.assertEqual(self.phone.sh("ls -d /dev/fastrpc-cdsp && /usr/bin/python3 -c 'import ctypes, json; print(1)'"), "/dev/fastrpc-cdsp\n1")


class OtherPhones(unittest.TestCase):
    @unittest.skipUnless(shutil.which("qemu-aarch64-static"), "apt-get install qemu-user-static")
    def test_programs_for_aarch64(self):
        """The smallest one there is: an ELF header and `exit(7)`."""
        code = bytes.fromhex("e00080d2" "a80b80d2" "010000d4")  # mov x0, #7; mov x8, #93; svc #0
        head = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0\xb7\0\x01\0\0\0" + (0x400078).to_bytes(8, "little") + (64).to_bytes(8, "little") + bytes(8 + 4) \
            + b"\x40\0\x38\0\x01\0\0\0\0\0\0\0"
        load = b"\x01\0\0\0\x05\0\0\0" + bytes(8) + (0x400000).to_bytes(8, "little") * 2 + (0x78 + len(code)).to_bytes(8, "little") * 2 + (0x1000).to_bytes(8, "little")
        phone = Phone(BENCH_PHONE_MACHINE="aarch64")
        self.addCleanup(phone.end)
        program = Path(phone.home, "seven")
        program.write_bytes(head + load + code)
        program.chmod(0o755)
        phone.adb("push", str(program), "/data/local/tmp/seven")
        self.assertEqual(phone.sh("uname -m; id -u; /data/local/tmp/seven; echo $?"), "aarch64\n2000\n7")
        # It comes back so after adbd's death, too.
        phone.tell("kill")
        phone.adb("wait-for-device")
        self.assertEqual(phone.sh("/data/local/tmp/seven; echo $?"), "7")

    def test_without_root(self):
        with tempfile.TemporaryDirectory() as home:
            base = Path(subprocess.run([HERE / "make.sh"], capture_output=True, text=True, check=True).stdout.strip())
            to = Path(home, "cache/bench/test-phone", base.name)
            to.parent.mkdir(parents=True)
            subprocess.run(["cp", "-a", base, to], check=True)
            # The checkout may be nobody else's to read.
            shutil.copytree(HERE, Path(home, "device"))
            subprocess.run(["chown", "-R", "65534:65534", home], check=True)
            os.chmod(home, 0o755)
            nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", f"HOME={home}", f"XDG_CACHE_HOME={home}/cache", f"TMPDIR={home}"]
            if subprocess.run([*nobody, "unshare", "--user", "--map-root-user", "true"], capture_output=True).returncode != 0:
                self.skipTest("this kernel allows no user namespaces")
            done = subprocess.run([*nobody, Path(home, "device/run"), "adb", "shell", "id -u; getprop ro.soc.model; touch /data/local/tmp/x && echo written"],
                                  capture_output=True, text=True, timeout=120, cwd="/")
            self.assertEqual(done.stdout.split(), ["2000", "SM8650", "written"], done.stderr)


if __name__ == "__main__":
    unittest.main()
