"""A server of completions as a process of its own: prints its address, ends with its input."""

import sys

from made import small_llama
from serving import CompletionServer

if __name__ == "__main__":
    with CompletionServer(small_llama(int(sys.argv[1]))) as server:
        print(server.url, flush=True)
        sys.stdin.read()
