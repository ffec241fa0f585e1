"""The Java clients' jars, and the one JVM of this process."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from jmsapi_conformance.brokers._process import cache as brokers_cache

__all__ = ["absent_tools", "jars", "java_class", "jpype", "start"]

_POM: Final = Path(__file__).with_name("pom.xml")
_BUILD_S: Final = 600
# It has no types to check.
jpype: Any = import_module("jpype")
import_module("jpype.config")


def absent_tools() -> list[str]:
    """Return which programs are missing that this needs."""
    return [tool for tool in ("java", "mvn") if shutil.which(tool) is None]


def jars() -> Path:
    """Fetch the jars by Maven, unless that was done for this very list; return their folder."""
    digest = hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
    cache_folder = brokers_cache()
    home = cache_folder / f"java-clients-{digest}"
    if home.is_dir():
        return home
    cache_folder.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix="java-clients-part-", dir=cache_folder))
    command = ["mvn", "--batch-mode", "--quiet", "--file", str(_POM), "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    if done.returncode:
        raise RuntimeError(f"mvn: {done.stdout}{done.stderr}")
    try:
        part.rename(home)
    except OSError:  # another run was quicker
        shutil.rmtree(part)
    return home


def start() -> None:
    """Start the JVM, unless it runs."""
    if jpype.isJVMStarted():
        return
    # Threads of clients that a test gave up must not keep the process.
    jpype.config.destroy_jvm = False
    # Bodies of tests are of java.util, and the brokers of tests are on this machine.
    trusting = "-Dorg.apache.activemq.SERIALIZABLE_PACKAGES=*"
    jpype.startJVM(
        "-Xmx512m", "-Xrs", trusting, classpath=[str(jar) for jar in sorted(jars().glob("*.jar"))], convertStrings=False
    )


@cache
def java_class(name: str) -> Any:
    """Return a Java class by its full name; those of JMS by their simple one."""
    return jpype.JClass(name if "." in name or name.startswith("[") else f"jakarta.jms.{name}")


if __name__ == "__main__":
    print(f"Java clients for the conformance suite: {jars()}")
