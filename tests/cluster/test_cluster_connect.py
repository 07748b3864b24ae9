"""Where the processes of a local cluster listen."""

from __future__ import annotations

import ipaddress
import os

import psutil

from ranksieve.cluster.connect import connect


def listening(process: int) -> set[str]:
    """The addresses on which a process accepts connections."""
    found = psutil.Process(process)
    connections = found.net_connections if hasattr(found, "net_connections") else found.connections
    return {
        f"{connection.laddr.ip} {connection.laddr.port}"
        for connection in connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


def test_local_workers_listen_on_the_loopback_interface_only():
    before = listening(os.getpid())
    with connect(None, local_workers=2) as client:
        here = listening(os.getpid()) - before  # the scheduler, its dashboard, and a nanny for each worker
        workers = [listening(process) for process in client.run(os.getpid).values()]
    assert len(here) == 4 and len(workers) == 2 and all(len(found) == 2 for found in workers), (here, workers)
    addresses = {address.split()[0] for address in here.union(*workers)}
    assert all(ipaddress.ip_address(address).is_loopback for address in addresses), addresses
