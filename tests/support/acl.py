"""What a user of Redis may do, as docs/security.rst shows it."""

from __future__ import annotations

import redis

#: Not among them: `+info`, with which the middleware can warn of an eviction policy that removes
#: locks, `+scan`, with which it can warn of mistyped queues, and `+select`, which a database other than 0 takes.
CHECKER_RIGHTS = """
    ~emq:* +eval +evalsha +time +exists +get +set +del +unlink +rename +pttl +pexpire +mget
    +hget +hmget +hset +hdel +lindex +llen +lpop +lpos +lpush +lrange +lrem +lset +ltrim +rpop +rpush
    +hlen +xlen +strlen +zpopmin
    +sadd +scard +smismember +srem +xadd +xrevrange +xtrim
    +zadd +zcard +zmscore +zrange +zrangebyscore +zrem +zrevrangebyscore +zscore
"""

USER, PASSWORD = "checker", "s3cr3t"

#: Not among them: `+select`, which a database other than 0 takes.
BROKER_RIGHTS = """
    ~emq:* +eval +evalsha +ping +time +exists +get +set +del +rename +type +pttl +pexpire +incr +incrby
    +mget +hget +hmget +hset +hdel +lindex +llen +lmove +lpop +lpos +lpush +lrange +lrem +rpop +rpush
    +hlen +xlen +strlen +zpopmin +bzpopmin
    +sadd +scard +srem +xadd +xtrim +zadd +zcard +zrange +zrangebyscore +zrem +zrevrange +zrevrangebyscore +zscore
    +xrevrange
"""

#: With both of these, what a killed worker held is recovered within seconds; docs/security.rst shows who needs which.
CRASH_RIGHTS = "+client|id +client|setname +client|list +info"

#: Beside both lists, what the verbs of the command need that act; docs/security.rst shows it.
ACTING_RIGHTS = "+@read +client|list"


#: With these as well as `CHECKER_RIGHTS`, a page has all that it shows, and its buttons work; docs/page.rst shows them.
PAGE_RIGHTS = "+scan +type +hexists +sismember +zcount +zrevrange +client|list"


def all_but(command: str) -> list[str]:
    """All rights but one, in words that Redis 6.2 knows: it takes away no part of a command."""
    name, *part = command.split("|")
    others = {"id", "setname", "list", "kill"} - set(part) if name == "client" else set()
    return ["+@all", f"-{name}", *(f"+client|{each}" for each in others)]


def user(server, admin, rights: str = CHECKER_RIGHTS) -> redis.Redis:
    """A client of a user who has these rights and no other."""
    admin.execute_command("ACL", "SETUSER", USER, "reset", "on", f">{PASSWORD}", *rights.split())
    return server.client(username=USER, password=PASSWORD)
