"""`packaging/install.sh` against a server on loopback that has a made-up release."""

import functools
import hashlib
import http.server
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "packaging/install.sh"
ARCHIVE = "longhaul-9.9.9-x86_64-unknown-linux-gnu.tar.gz"
PROGRAM = "#!/bin/sh\necho longhaul 9.9.9\n"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def archive(program=PROGRAM):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, text in [("longhaul", program), ("completions/longhaul.bash", "complete"), ("man/longhaul.1", ".TH")]:
            info = tarfile.TarInfo(f"longhaul-9.9.9/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return raw.getvalue()


class Install(unittest.TestCase):
    def setUp(self):
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        self.home = self.place / "home"
        self.home.mkdir()
        self.release = self.place / "served/latest/download"
        self.release.mkdir(parents=True)
        handler = functools.partial(QuietHandler, directory=str(self.place / "served"))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.addCleanup(self.server.server_close)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.program = self.home / ".local/bin/longhaul"
        self.serve(archive())

    def serve(self, content, digest=None):
        (self.release / ARCHIVE).write_bytes(content)
        digest = digest or hashlib.sha256(content).hexdigest()
        sums = f"{'0' * 64}  install.sh\n{digest}  {ARCHIVE}\n"
        (self.release / "SHA256SUMS").write_text(sums)

    def run_script(self, *arguments, **changes):
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LONGHAUL_RELEASES": self.url,
                     "no_proxy": "127.0.0.1", **changes}
        variables = {name: value for name, value in variables.items() if value is not None}
        return subprocess.run(["sh", SCRIPT, *arguments], env=variables, capture_output=True, text=True, timeout=60)

    def check_refused(self, reason, before=None, **changes):
        """It ends with one line that has this text, and leaves the program as it was and no files of its own."""
        done = self.run_script(**changes)
        self.assertEqual(done.returncode, 1, done)
        lines = done.stderr.strip().splitlines()
        self.assertTrue(lines[-1].startswith("install.sh: "), done)
        self.assertIn(reason, lines[-1])
        self.assertEqual(self.program.read_text() if self.program.exists() else None, before)
        if self.program.parent.exists():
            self.assertEqual([path.name for path in self.program.parent.iterdir() if path != self.program], [])

    def test_it_installs_into_the_home_and_says_what_is_next(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.program.read_text(), PROGRAM)
        self.assertIn(f"installed longhaul 9.9.9 as {self.program}", done.stdout)
        self.assertIn("add it to your path", done.stdout)
        self.assertIn("longhaul doctor", done.stdout)
        self.assertTrue((self.home / ".local/share/bash-completion/completions/longhaul").exists())
        self.assertTrue((self.home / ".local/share/man/man1/longhaul.1").exists())
        self.assertEqual([path.name for path in self.program.parent.iterdir()], ["longhaul"])

    def test_a_version_that_is_named_is_installed(self):
        shutil.copytree(self.release, self.place / "served/download/v9.9.9")
        shutil.rmtree(self.release)
        self.assertEqual(self.run_script(LONGHAUL_VERSION="9.9.9").returncode, 0)
        self.assertEqual(self.program.read_text(), PROGRAM)

    def test_it_replaces_a_program_that_runs_and_removes_it_again(self):
        self.program.parent.mkdir(parents=True)
        shutil.copy(shutil.which("sleep"), self.program)
        running = subprocess.Popen([self.program, "60"])
        try:
            self.assertEqual(self.run_script().returncode, 0)
            self.assertEqual(self.program.read_text(), PROGRAM)
            self.assertIsNone(running.poll(), "what runs goes on")
        finally:
            running.kill()
            running.wait()
        done = self.run_script("--uninstall")
        self.assertEqual(done.returncode, 0, done)
        self.assertFalse(self.program.exists())
        self.assertFalse((self.home / ".local/share/man/man1/longhaul.1").exists())
        again = self.run_script("--uninstall")
        self.assertEqual((again.returncode, again.stderr), (1, f"install.sh: there is no `{self.program}`\n"))

    def test_another_digest_installs_nothing_and_leaves_what_is_there(self):
        self.program.parent.mkdir(parents=True)
        self.program.write_text("old")
        self.serve(archive(), digest="1" * 64)
        self.check_refused("SHA256SUMS says 1111", before="old")

    def test_a_cut_archive_is_refused(self):
        content = archive()
        self.serve(content)
        (self.release / ARCHIVE).write_bytes(content[:-20])
        self.check_refused("nothing was installed")

    def test_missing_files_are_refused_with_their_url(self):
        (self.release / ARCHIVE).unlink()
        self.check_refused(f"cannot fetch {self.url}/latest/download/{ARCHIVE}")
        (self.release / "SHA256SUMS").unlink()
        self.check_refused(f"cannot fetch {self.url}/latest/download/SHA256SUMS")

    def test_a_release_without_this_machine_is_refused(self):
        (self.release / "SHA256SUMS").write_text(f"{'1' * 64}  ../../evil-x86_64-unknown-linux-gnu.tar.gz\n")
        self.check_refused("names no archive for x86_64-unknown-linux-gnu")

    def test_without_a_network_or_a_place_of_releases_it_says_so(self):
        self.check_refused("cannot fetch http://127.0.0.1:1/latest/download/SHA256SUMS", LONGHAUL_RELEASES="http://127.0.0.1:1")
        self.check_refused("no place of releases is set", LONGHAUL_RELEASES=None)

    def test_a_directory_that_cannot_be_written_is_named(self):
        # Root may write everywhere, but not below a file.
        (self.home / ".local").write_text("")
        self.check_refused(f"cannot make `{self.program.parent}`")
        if os.geteuid() != 0:
            (self.home / ".local").unlink()
            self.program.parent.mkdir(parents=True)
            self.program.parent.chmod(0o500)
            self.check_refused(f"cannot write to `{self.program.parent}`")

    def test_a_program_that_does_not_start_here_replaces_nothing(self):
        self.program.parent.mkdir(parents=True)
        self.program.write_text("old")
        self.serve(archive("#!/bin/sh\necho no such glibc >&2\nexit 1\n"))
        self.check_refused("does not start on this machine: no such glibc", before="old")

    def test_an_archive_without_the_program_is_refused(self):
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w:gz") as tar:
            tar.addfile(tarfile.TarInfo("longhaul-9.9.9/other"), io.BytesIO(b""))
        self.serve(raw.getvalue())
        self.check_refused("has no program in it")

    @unittest.skipUnless(shutil.which("minisign"), "minisign is not here")
    def test_a_signature_of_another_key_is_refused(self):
        def key(name):
            files = [self.place / f"{name}.pub", self.place / f"{name}.key"]
            subprocess.run(["minisign", "-GW", "-p", files[0], "-s", files[1]], check=True, capture_output=True)
            return files[0].read_text().splitlines()[1], files[1]

        (ours, ours_secret), (_, others_secret) = key("ours"), key("others")
        sums, signature = self.release / "SHA256SUMS", self.release / "SHA256SUMS.minisig"

        def sign(secret):
            subprocess.run(["minisign", "-S", "-s", secret, "-m", sums, "-x", signature], check=True, capture_output=True)

        self.check_refused("cannot fetch", LONGHAUL_PUBLIC_KEY=ours)
        sign(others_secret)
        self.check_refused("not signed with the key of Longhaul", LONGHAUL_PUBLIC_KEY=ours)
        sign(ours_secret)
        sums.write_text(sums.read_text() + "\n")
        self.check_refused("not signed with the key of Longhaul", LONGHAUL_PUBLIC_KEY=ours)
        sign(ours_secret)
        done = self.run_script(LONGHAUL_PUBLIC_KEY=ours)
        self.assertEqual(done.returncode, 0, done)


if __name__ == "__main__":
    unittest.main()
