"""Signs of known failures in an exception's text or in a line, the most specific first (pure).

Patterns have no nested repeats: they take time proportional to the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sign:
    """`pattern` finds a kind; its named groups become values. `reach`: how many lines before the end may still be the cause
    where no exception says more; 0 for what only an exception can tell. A strong sign wins over an exception without one."""

    kind: str
    pattern: re.Pattern[str]
    reach: int = 60
    strong: bool = False
    follow_up: bool = False
    values: dict[str, str] = field(default_factory=dict)


def _sign(kind: str, pattern: str, *, flags: int = 0, reach: int = 60, **more: bool) -> Sign:
    return Sign(
        kind,
        re.compile(pattern, flags),
        reach=reach,
        strong=more.get("strong", False),
        follow_up=more.get("follow_up", False),
    )


# Xids that mean the GPU or its link; the others may come from a program (NVIDIA's list)
BROKEN_GPU = frozenset({48, 54, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 136, 140, 143})
ANY_CASE = re.IGNORECASE

SIGNS: tuple[Sign, ...] = (
    _sign("xid", r"\bXid:? ?(?:\(PCI:[\w:.]{1,30}\): ?)?(?P<xid>\d{1,3})\b", reach=300, strong=True),
    _sign(
        "gpu_hardware",
        r"(?P<fault>uncorrectable (?:NVLink|ECC) error|GPU has fallen off the bus|GPU is lost)",
        flags=ANY_CASE,
        reach=300,
        strong=True,
    ),
    # shared memory
    _sign(
        "shared_memory_full",
        r"killed by signal: Bus error|Unexpected bus error encountered in worker",
        reach=200,
        strong=True,
    ),
    _sign(
        "shared_memory_full",
        r"unable to (?:write to file|mmap \d+ bytes from (?:the )?file|open shared memory object) </(?:torch|dev/shm)",
        reach=200,
    ),
    _sign(
        "shared_memory_full",
        r"(?:creating|allocat\w+|attach\w*) shared memory segment|/dev/shm/\S+[^\n]{0,40}No space left|"
        r"No space left[^\n]{0,60}/dev/shm/",
        reach=200,
    ),
    # GPU memory
    _sign(  # as torch wrote it before 2.1
        "cuda_out_of_memory",
        r"CUDA out of memory\. Tried to allocate (?P<asked>[\d.]+ \w+) \(GPU \d+; (?P<total>[\d.]+ \w+) total capacity;"
        r"[^\n]{0,80}?(?P<free>[\d.]+ \w+) free",
        reach=200,
    ),
    _sign(
        "cuda_out_of_memory",
        r"CUDA out of memory\. Tried to allocate (?P<asked>[\d.]+ \w+)(?:[^\n]{0,60}? total capacity of "
        r"(?P<total>[\d.]+ \w+) of which (?P<free>[\d.]+ \w+) is free)?",
        reach=200,
    ),
    _sign(
        "cuda_out_of_memory",
        r"RESOURCE_EXHAUSTED: Out of memory (?:while trying to allocate|allocating) (?P<asked>[\d.,]+ ?\w+)",
        reach=200,
    ),
    _sign(
        "cuda_out_of_memory", r"OOM when allocating tensor with shape ?(?P<shape>\[[\d, ]*\])[^\n]{0,200}GPU", reach=200
    ),
    _sign(
        "cuda_out_of_memory",
        r"cupy\.cuda\.memory\.OutOfMemoryError: Out of memory allocating (?P<asked>[\d,]+ bytes)",
        reach=200,
    ),
    _sign(
        "cuda_out_of_memory",
        r"CUDA (?:error: out of memory|out of memory)|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|"
        r"cudaMalloc\w* failed: out of memory",
        reach=200,
    ),
    # kernels
    _sign("cuda_assert", r"device-side assert triggered", reach=200, strong=True),
    _sign(
        "cuda_illegal_access",
        r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS",
        reach=200,
        strong=True,
    ),
    # drivers
    _sign("driver_broken", r"Driver/library version mismatch"),
    _sign("cuda_driver", r"NVIDIA driver on your system is too old(?: \(found version (?P<driver>\d+)\))?"),
    _sign(
        "cuda_driver",
        r"CUDA driver version is insufficient for CUDA runtime version|"
        r"forward compatibility was attempted on non supported HW",
    ),
    _sign("cuda_architecture", r"no kernel image is available for execution on the device"),
    _sign(
        "no_gpu",
        r"Found no NVIDIA driver|No CUDA GPUs are available|no CUDA-capable device is detected|"
        r"Torch not compiled with CUDA enabled|Unable to initialize backend 'cuda'|"
        r"libcuda\.so\.1: cannot open shared object",
    ),
    # links between workers
    _sign(
        "nccl_timeout",
        r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=\d+, OpType=(?P<operation>\w+)[^\n]"
        r"{0,200}?ran for (?P<milliseconds>\d+) milliseconds",
        reach=400,
        strong=True,
    ),
    _sign(
        "nccl_timeout",
        r"Watchdog caught collective operation timeout|Some NCCL operations have failed or timed out",
        reach=400,
        strong=True,
    ),
    _sign(
        "peer_lost",
        r"ncclRemoteError|NCCL communicator was aborted|Connection closed by peer|Connection reset by peer|"
        r"\[Errno 104\]|Broken pipe",
        follow_up=True,
    ),
    _sign(
        "nccl_error",
        r"NCCL error[^\n]{0,200}, (?P<fault>unhandled (?:system|cuda) error|internal error|invalid usage)",
        reach=200,
    ),
    _sign("nccl_error", r"(?P<fault>nccl(?:System|UnhandledCuda|Internal|InvalidUsage)Error)", reach=200),
    _sign("rendezvous_timeout", r"waiting for clients\. (?P<joined>\d+)/(?P<expected>\d+) clients joined"),
    _sign("rendezvous_timeout", r"RendezvousTimeoutError|client socket has timed out after [^\n]{0,40}connect to"),
    # disks and memory of the machine
    _sign("disk_full", r"No space left on device(?:: ?'(?P<path>[^'\n]{1,300})')?"),
    _sign("disk_full", r"(?:write error|cannot create[^\n]{0,80}): No space left on device"),
    _sign("disk_quota", r"Disk quota exceeded(?:: ?'(?P<path>[^'\n]{1,300})')?"),
    _sign("host_memory_refused", r"Unable to allocate (?P<asked>[\d.]+ \w+) for an array"),
    _sign(
        "host_memory_refused",
        r"DefaultCPUAllocator: (?:can't|not enough) (?:allocate )?memory: you tried to allocate (?P<asked>\d+ bytes)",
    ),
    _sign("host_memory_refused", r"^(?:\w+\.)*MemoryError\b|Cannot allocate memory|std::bad_alloc"),
    _sign(
        "child_killed",
        r"killed by signal: Killed|Signal 9 \(SIGKILL\) received by PID|died with <Signals\.SIGKILL|"
        r"exitcode *: -9\b|BrokenProcessPool|TerminatedWorkerError",
        reach=100,
        strong=True,
    ),
    # numbers
    _sign("nan_loss", r"FloatingPointError: [^\n]{0,200}\b(?:nan|inf|infinite)", flags=ANY_CASE),
    _sign(
        "nan_loss",
        r"\bloss\b[^\n]{0,40}\b(?:is|was|became|are|of) (?:now )?(?:nan|inf|not finite|infinite)\b|(?:nan|"
        r"non-?finite|infinite) (?:\w+ )?loss\b",
        flags=ANY_CASE,
    ),
    # imports
    _sign("module_missing", r"No module named '?(?P<module>[\w.]+)'?"),
    _sign(
        "name_missing",
        r"ImportError: cannot import name '(?P<thing>[^'\n]{1,100})' from (?:partially initialized module "
        r")?'(?P<module>[\w.]+)'",
        reach=0,
    ),
    _sign("library_missing", r"(?P<library>[\w.+-]+\.so[\w.]*): cannot open shared object file"),
    _sign("import_failed", r"^ImportError: (?P<message>[^\n]+)", reach=0),
    _sign("script_missing", r"can't open file '(?P<path>[^'\n]{1,300})': \[Errno 2\]", reach=5),
    # files and variables
    _sign("file_missing", r"^FileNotFoundError: [^\n]{0,200}?'(?P<path>[^'\n]{1,300})'", reach=0),
    _sign("permission_denied", r"^PermissionError: [^\n]{0,80}?'(?P<path>[^'\n]{1,300})'", reach=0),
    _sign("variable_missing", r"^KeyError: '(?P<variable>[A-Z][A-Z0-9_]{2,80})'$", flags=re.M, reach=0),
    _sign(
        "variable_missing",
        r"\b(?P<variable>[A-Za-z_]\w{0,80}): (?:unbound variable|parameter (?:null or )?not set)",
        reach=5,
    ),
    # servers
    _sign(
        "address_in_use",
        r"(?:Address already in use|EADDRINUSE)(?:[^\n]{0,60}?(?:port|:)[ :]?(?P<port>\d{2,5})\b)?",
        flags=ANY_CASE,
    ),
    _sign(
        "access_refused",
        r"\b(?P<status>401|403) (?:Client Error|Unauthorized|"
        r"Forbidden)(?:[^\n]{0,60}?url: https?://(?P<host>[^/\s:]+))?",
        reach=20,
    ),
    _sign(
        "host_not_found",
        r"HTTPS?ConnectionPool\(host='(?P<host>[^'\n]{1,200})'[^\n]{0,300}(?:Name or service not known|"
        r"NameResolutionError|name resolution|nodename nor servname)",
    ),
    _sign(
        "host_not_found",
        r"(?:Could not resolve host|unable to resolve host(?: address)?|Failed to resolve):? [‘'\"]?(?P<host>[\w.-]+)",
    ),
    _sign(
        "host_not_found",
        r"Name or service not known|Temporary failure in name resolution|No address associated with hostname|"
        r"nodename nor servname",
    ),
    _sign("connection_refused", r"HTTPS?ConnectionPool\(host='(?P<host>[^'\n]{1,200})'[^\n]{0,300}Connection refused"),
    _sign("connection_refused", r"Failed to connect to (?P<host>[\w.:-]+)[^\n]{0,60}Connection refused"),
    _sign("connection_refused", r"Connection refused|\[Errno 111\]", reach=20),
    _sign(
        "connection_timeout",
        r"HTTPS?ConnectionPool\(host='(?P<host>[^'\n]{1,200})'[^\n]{0,300}(?:timed out|TimeoutError)",
    ),
    _sign(
        "connection_timeout", r"^(?:\w+\.)*(?:ConnectTimeout|ReadTimeout|TimeoutError|ConnectTimeoutError)\b", reach=0
    ),
    # the program's own words
    _sign(
        "wrong_arguments",
        r"^\S+: error: (?P<message>(?:unrecognized arguments|the following arguments are required|argument |"
        r"invalid choice|ambiguous option)[^\n]{0,300})",
        reach=5,
    ),
    _sign("syntax_error", r"^(?:SyntaxError|IndentationError|TabError): (?P<message>[^\n]+)", reach=0),
    _sign(
        "shell_syntax",
        r"^(?:\S*sh|\S+): (?:line )?(?:-c: )?(?:line )?\d*:? ?(?P<message>[Ss]yntax error[^\n]{0,200}|"
        r"unexpected EOF while[^\n]{0,200})",
        reach=5,
    ),
    _sign("assertion", r"^AssertionError(?:: (?P<message>[^\n]+))?", reach=0),
    # the shell's
    _sign(
        "not_executable",
        r"^(?:\S*sh|env): (?:\d+: |line \d+: |-c: line \d+: )?(?P<command>[^\s:]{1,200}): Permission denied",
        reach=3,
    ),
    _sign(
        "command_not_found",
        r"^(?:\S*sh|env|\S+\.sh)(?:: line \d+|: \d+|"
        r": -c: line \d+)?: (?P<command>[^\s:]{1,200}): (?:command )?not found",
        reach=3,
    ),
    _sign(
        "script_missing",
        r"^(?:\S*sh): (?:\d+: )?(?:cannot open |Can't open )?(?P<path>[^\s:]{1,200}\.(?:sh|py)): (?:No such file|"
        r"not found)",
        reach=3,
    ),
    _sign(
        "file_missing",
        r"^[\w./-]{1,60}: (?:\d+: |line \d+: )?(?:cannot (?:access|stat|open) |"
        r"cannot open )?'?(?P<path>[^'\n:]{1,300}?)'?: No such file(?: or directory)?$",
        reach=3,
    ),
    _sign(
        "permission_denied",
        r"^[\w./-]{1,60}: (?:\d+: |"
        r"line \d+: )?(?:cannot \w+(?: \w+)? )?'?(?P<path>[^'\n:]{1,300}?)'?: Permission denied$",
        reach=3,
    ),
)
