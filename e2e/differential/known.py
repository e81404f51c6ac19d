"""
How answers are compared, and where they may differ: each a narrow predicate, with its reason. What nothing here explains is a defect.
"""

import json
import math
import re
import struct
from decimal import Decimal
from typing import Callable, NamedTuple

from native import UNSET

_INTERNAL = ("0000", "1300", "1400", "1500")
# Times of the server are of this century; those that statements name begin at 1000.
_CLOCK_AT_LEAST = 10**15
# Sums and averages of times that statements name.
_NAMED_AT_MOST = 10**9
_CLOCKS = re.compile(rb"\b(?:1[6-9]|2\d)\d{14}\b")
# The first day of the Gregorian calendar, in days of 1970.
_GREGORIAN = -141_427
# Of a timestamp of CQL; later ones come of times before 1970, whose days do not fit.
_DAYS_MAX = 10**8
# Times to live are of a hundred thousand seconds, less what has passed since.
_LEAST_LEFT = 90_000
_SECONDS = re.compile(rb"\b(?:9\d{4}|100000)\b")


class Known(NamedTuple):
    reason: str
    # Of the texts that define what the step is about, the step, Cassandra's answer and Halcyon's.
    explains: Callable


def _is_syntax(_schema, _step, expected, found):
    return expected.code == found.code == "2000"


def _is_internal(_schema, step, expected, found):
    """A write whose mutation fails is not answered in time."""
    is_late = not step.is_read and expected.code == "1100" and found.refused
    names_object = re.search(r"cql3\.selection\.[\w$]+@", expected.refused or "") is not None and found.refused
    return expected.code in _INTERNAL or is_late or names_object


def _is_incomparable(schema, step, expected, _found):
    """Of the key of a counter, which is read before it is written."""
    has_key = any(re.search(r"\bc\d (?:tinyint|decimal)\b.*\bcounter\b", text) for text in schema)
    return step.verb == "UPDATE" and expected.code == "1100" and has_key


def _is_null_in_key(_schema, step, expected, found):
    """Of a conditional INSERT or UPDATE, whose partition key Cassandra does not validate."""
    return " IF " in step.text and not expected.refused and (found.refused or "") == "2200 Null value read when not allowed"


def _is_torn_character(_schema, step, expected, found):
    """Of a definition that has a fault of its characters or lacks a type, and declares a column twice: which one is named."""
    is_torn = re.search("mismatched character|NullPointerException", expected.refused or "") is not None
    are_two = is_torn and (found.refused or "").startswith("2200 Duplicate column ")
    return step.text.startswith("CREATE TABLE ") and are_two


def _is_hint_of_altered(schema, step, expected, found):
    """Of a statement that was prepared before the type was altered."""
    altered = [name for text in schema for name in re.findall(r"ALTER TYPE (\w+) ADD", text)]
    dropped = [name for text in schema for name in re.findall(r"DROP TYPE (?:IF EXISTS )?(\w+)", text)]
    if any(f"{name})" in step.text for name in dropped):
        return (found.refused or "").startswith("2200 Unknown type ")
    is_hint = any(re.search(rf"\((?:[\w<, ]*<)?{name}\b[^()]*\) ?[?:{{(\[]", step.text) for name in altered)
    return is_hint and not expected.refused and not found.refused


def _is_without_values(_schema, _step, expected, found):
    """Of a query that has markers."""
    return expected.refused == "2200 Invalid amount of bind variables" and re.match("2200 Cannot (?:provide custom|directly modify)", found.refused or "") is not None


def _is_java(_schema, step, expected, found):
    """Both compilers refuse the body, in the line that both name."""
    lines = [re.findall(r"(?m)^(?:2200 Java source compilation failed:|Line \d+:)", answer.refused or "") for answer in (expected, found)]
    return step.text.startswith("CREATE ") and lines[0] == lines[1] != []


def _is_descending(schema, step, expected, found):
    """Of a column in descending order Cassandra does not know the type there."""
    descending = [name for text in schema for name in re.findall(r"(\w+) DESC", text)]
    named = [name for name in descending if re.search(rf"\b{name}\b", step.text)]
    if not named:
        return False
    any_named = "|".join(named)
    if expected.refused:
        wants = r"requires a [a-z/ ]+ argument, but found argument (\w+) of type|CONTAINS(?: KEY)? on non-(?:collection|map) column (\w+)|Cannot infer type of argument (\w+)[.\[]"
        wants = re.search(wants, expected.refused)
        # It is another column that the refusal names: the first that is selected.
        is_cast = "Invalid call to function system.cast_as_" in expected.refused or " cannot be cast to " in expected.refused
        is_part = "Invalid call to function" in expected.refused and re.search(rf"\b(?:{any_named})[\[.]|\w\([^()]*\b(?:{any_named})\b", step.text) is not None
        said = ("Column {} cannot be used as a map", "Invalid element access syntax for non-collection column {}")
        is_said = any(text.format(name) in expected.refused for text in said for name in named)
        is_literal = "Undefined column name" in expected.refused and "{" in step.text
        is_typed = re.search("^2200 (?:Ambiguous '|Type error: )|Ambiguous '", expected.refused)
        return is_typed is not None or is_cast or is_part or is_said or is_literal or (wants is not None and any(name in named for name in wants.groups()))
    # Of overloads one returns cells, which a frozen column does not take.
    if (found.refused or "").startswith("2200 Invalid call to function ") and any("CREATE OR REPLACE FUNCTION" in text for text in schema):
        return True
    # Overloads of the column's type are not found: another is called.
    names = [[re.sub(r"\w+\.", "", name) for page in _pages(answer) for name, _ in page[1]] for answer in (expected, found)]
    is_called = re.search(rf"\b\w+\((?:{any_named})\)", step.text) is not None and any("FUNCTION" in text for text in schema)
    if is_called and names[0] == names[1] and _pages(expected)[0][1] != _pages(found)[0][1]:
        return True
    plain = rf"cast\(({any_named}) as \w+\)"
    # A cast of an empty value is null.
    theirs, ours = (re.sub(plain, r"\1", str(answer.lines)).replace("b''", "None") for answer in (expected, found))
    return found.refused is None and theirs == ours


def _is_descending_list(schema, _step, expected, found):
    """A list that a client binds: Cassandra makes no objects of its elements there."""
    is_there = any(re.search(r"\b(\w+) frozen<list<.*\b\1 DESC", text) for text in schema)
    is_null = (expected.refused or "").endswith("Null value read when not allowed") and not found.refused
    return is_there and (is_null or not expected.refused and (found.refused or "").startswith("2200 Zero length BigInteger"))


def _is_time_uuid(_schema, _step, expected, found):
    """The type of a column of the result, and nothing else."""
    custom = "org.apache.cassandra.db.marshal.LegacyTimeUUIDType"
    return custom in str(expected.lines) and str(expected.lines).replace(custom, "timeuuid") == str(found.lines)


def _is_time_uuid_of_function(schema, _step, expected, _found):
    """As the argument of another one, which takes a uuid."""
    is_refused = re.match("2200 (?:Invalid call to function|Type error)", expected.refused or "") is not None
    return is_refused and any("RETURNS timeuuid" in text for text in schema) and any("(a uuid)" in text for text in schema)


def _is_order_of_fields(_schema, step, expected, found):
    """In names of columns of the result or in a message, and nothing else."""
    are_alike = [page[2:] for page in _pages(expected)] == [page[2:] for page in _pages(found)] or "JSON" in step.text
    return "{f" in step.text and are_alike and sorted(str(expected)) == sorted(str(found))


def _is_order_of_members(_schema, step, expected, found):
    """Of several members of a JSON object that do not fit, each tells of another one."""
    faults = ("2200 Error decoding JSON value for ", "2200 Unable to convert ")
    return "JSON" in step.text and all((answer.refused or "").startswith(faults) for answer in (expected, found))


def _is_name_of_json(_schema, step, expected, found):
    """The name of a column or a function in a message: as it was called first on the node."""
    theirs, ours = (str(answer).replace("to_json", "tojson").replace("from_json", "fromjson") for answer in (expected, found))
    return re.search("(?i)to_?json|from_?json", step.text) is not None and theirs == ours


def _is_hidden_column(schema, _step, expected, found):
    """Of a table with COMPACT STORAGE that has no clustering columns."""
    return any("COMPACT STORAGE" in text for text in schema) and "column1" in str(expected) + str(found)


def _is_sign_of_nan(_schema, _step, expected, found):
    """Of a number that was computed, here or where it was written."""
    forms = {"float": ">f", "double": ">d"}
    return _differ_only(expected, found, lambda kind, *both: kind in forms and all(math.isnan(struct.unpack(forms[kind], value)[0]) for value in both))


def _is_order_of_conditions(_schema, step, expected, found):
    """Of several conditions, one is false and another one cannot be evaluated."""
    refused = [answer.refused for answer in (expected, found) if answer.refused]
    faults = r"Invalid comparison with|Invalid negative list index|Invalid 'unset' value in condition|Invalid null value for \w+ element access"
    _, *conditions = step.text.split(" IF ")
    are_several = len(conditions) > 1 or conditions and " AND " in conditions[0]
    return are_several and all(re.search(faults, fault) for fault in refused)


def _is_element_of_map(schema, step, _expected, _found):
    """In a condition, of a map whose keys and values have different types."""
    _, _, conditions = step.text.partition(" IF ")
    names = re.findall(r"\b(\w+)\[[^]]*\]\s*(?:[=<>!]|IN)", conditions)
    maps = [f"{name} {frozen}map<" for name in names for frozen in ("", "frozen<")]
    return any(column in text for column in maps for text in schema)


def _is_unset_member(_schema, step, expected, found):
    """Of an IN that filters."""
    return UNSET in step.values and " IN (" in step.text and "ALLOW FILTERING" in step.text and not expected.refused and not found.refused


def _is_first_fault_of_selection(_schema, step, expected, found):
    """A function of constants that fails, and a value that a client binds."""
    fails = (expected.refused or "").startswith("2200 In call to function ")
    return fails and bool(step.values) and re.match(r"2200 (?:Expected|Not enough|Unexpected|Invalid|null is not)", found.refused or "") is not None


def _is_null_in_condition(_schema, step, expected, found):
    """A list that a client binds: Cassandra fails where it compares it."""
    is_refused = (found.refused or "").endswith("null is not supported inside collections")
    return " IF " in step.text and bool(step.values) and is_refused and not expected.refused


def _is_unset_in_contains(_schema, step, expected, found):
    """In a condition on a collection."""
    is_asked = UNSET in step.values and re.search(r" IF .*\bCONTAINS\b", step.text) is not None
    return is_asked and not expected.refused and (found.refused or "").startswith("2200 Invalid 'unset' value in condition")


def _is_mix_of_conditions(_schema, step, expected, found):
    """Both refuse a batch, Cassandra before it binds the statement that does not go with the others."""
    return step.verb == "BATCH" and (expected.refused or "").startswith(("2200 Cannot mix IF ", "2200 Batch with conditions cannot span ")) and found.refused is not None


def _is_own_state(_schema, step, expected, _found):
    """Of a page that Cassandra has sent itself."""
    return expected.refused == "000a Invalid value for the paging state" and " GROUP BY " in step.text and any(line[0] == "page" for line in expected.lines)


def _is_asked_at_once(_schema, _step, expected, found):
    """Values that do not fit the markers, of a statement that one of both has forgotten: a QUERY is refused in other words than an EXECUTE."""
    words = r"2200 (?:Invalid amount of bind variables|there were \d+ markers\(\?\) in CQL but \d+ bound variables)"
    return all(re.match(words, answer.refused or "") for answer in (expected, found))


def _is_bounded_by_null(_schema, step, expected, found):
    """No row: it is refused to page it, or answered."""
    is_paged = (expected.refused or "").startswith("2200 Cannot page queries with both ORDER BY and a IN")
    return is_paged and " null" in step.text and not found.refused and not _rows(found)


def _is_beside_attached(schema, step, expected, found):
    """CONTAINS on a frozen collection that has no index."""
    frozen = [name for name in re.findall(r"\b(\w+) CONTAINS", step.text) if any(f"{name} frozen<" in text for text in schema)]
    return frozen and any("USING 'sai'" in text for text in schema) and not expected.refused and len(_rows(expected)) < len(_rows(found))


def _is_view_of_descending(schema, step, expected, found):
    """The same rows of several partitions of a view, whose key is in descending order in the base."""
    is_asked = any("MATERIALIZED VIEW" in text for text in schema) and any(" DESC" in text for text in schema) and " IN (" in step.text
    rows = [sorted(map(str, _rows(answer))) for answer in (expected, found)]
    return is_asked and _have_rows(step, expected, found) and (rows[0] == rows[1] or "LIMIT" in step.text and len(rows[0]) == len(rows[1]))


def _is_scale_of_logarithm(_schema, step, expected, found):
    """Another form of the same decimal: the first logarithm of a node has other digits than later ones."""
    is_alike = _differ_only(expected, found, lambda kind, *both: kind == "decimal" and _number_of(kind, both[0]) == _number_of(kind, both[1]) or "JSON" in step.text)
    return "log10(" in step.text and is_alike


def _is_beside_sasi(schema, step, expected, found):
    """Rows that an IN of the same statement does not name, or a CONTAINS."""
    is_read = any("SASIIndex" in text for text in schema) and _have_rows(step, expected, found)
    return is_read and (" IN " in step.text or " CONTAINS " in step.text and _are_among(found, expected))


def _is_second_attached(schema, step, expected, found):
    """Of a table with static columns and two indexes, not all rows."""
    attached = sum("USING 'sai'" in text for text in schema)
    is_read = attached > 1 and any(" static" in text for text in schema) and _have_rows(step, expected, found)
    return is_read and len(_rows(expected)) < len(_rows(found)) and _are_among(expected, found)


def _is_beside_static_of_key(schema, step, expected, found):
    """Of a table that has an index on a column of the partition key, not all rows."""
    keys = _partition_key(schema)
    indexed = re.findall(r"CREATE INDEX \w+ ON t \((\w+)\) USING 'sai'", " ".join(schema))
    has_both = len(keys) > 1 and any(name in keys for name in indexed) and any(" static" in text for text in schema)
    is_read = has_both and _have_rows(step, expected, found)
    return is_read and len(_rows(expected)) < len(_rows(found)) and _are_among(expected, found)


def _is_range_of_inet(schema, step, expected, found):
    """Of an indexed column, of which both answer rows."""
    made = " ".join(schema)
    indexed = [name for name in re.findall(r"ON t \((\w+)\) USING '(?:sai|StorageAttachedIndex)'", made) if re.search(rf"\b{name} inet\b", made)]
    return _have_rows(step, expected, found) and any(re.search(rf"\b{name} [<>]", step.text) for name in indexed)


def _is_empty_in_sasi(schema, step, expected, found):
    """An equality with an empty value finds nothing."""
    is_asked = b"" in step.values or re.search(r"= (?:''|0x\b(?![0-9a-f])|\w+\(0x\))", step.text) is not None
    is_read = any("SASIIndex" in text for text in schema) and is_asked and _have_rows(step, expected, found)
    return is_read and _are_among(expected, found)


def _is_empty_in_attached(schema, step, expected, found):
    """A range without a lower bound, of a type whose order begins with the empty value."""
    made = " ".join(schema)
    indexed = [name for name in re.findall(r"ON t \((\w+)\) USING 'sai'", made) if not re.search(rf"\b{name} (?:text|blob|boolean)\b", made)]
    return any(re.search(rf"\b{name} <", step.text) for name in indexed) and _have_rows(step, expected, found) and _are_among(expected, found)


def _is_null_of_decimals(schema, step, expected, found):
    """In a frozen list, as JSON: of other types it fails."""
    theirs, ours = (str(answer.lines).replace("null", '""') for answer in (expected, found))
    return any("list<decimal>" in text for text in schema) and "json" in step.text.lower() and theirs == ours


def _is_start_of_sasi(schema, step, expected, found):
    """Of a read of partitions behind a token."""
    indexed = any("SASIIndex'" in text for text in schema)
    is_read = indexed and re.search(r"token\([\w, ]+\) >[^=]", step.text) is not None and _have_rows(step, expected, found)
    return is_read and _are_among(found, expected)


def _is_static_alone_of_sasi(schema, step, expected, found):
    """Of a static column, which is compared: partitions without rows are not found."""
    indexed = [name for text in schema for name in re.findall(r"ON t \((s\d+)\) USING '[\w.]*SASIIndex'", text)]
    is_read = any(re.search(rf"\b{name} (?:[<>=]|LIKE)", step.text) for name in indexed) and _have_rows(step, expected, found)
    return is_read and _are_among(expected, found)


def _is_static_of_sasi(schema, step, expected, found):
    """Of a static column, beside a part of the partition key: rows of other partitions, too."""
    keys = _partition_key(schema)
    indexed = any(re.search(r"ON t \(s\d+\) USING '[\w.]*SASIIndex'", text) for text in schema)
    named = [name for name in keys if re.search(rf"\b{name} (?:=|IN)", step.text)]
    is_read = indexed and 0 < len(named) < len(keys) and _have_rows(step, expected, found)
    return is_read and _are_among(found, expected)


def _is_removed_from_static(schema, step, expected, found):
    """An element or a key of a static collection, which filters."""
    asked = re.findall(r"\b(\w+)(?: CONTAINS|\[)", step.text)
    is_static = any(re.search(rf"\b{name} [^,]*<.*> static", text) for name in asked for text in schema)
    # A page may end with rows that are left out later: then it is the last one.
    is_cut = step.page_size is not None and _are_among(expected, found)
    is_read = is_static and "ALLOW FILTERING" in step.text and _have_rows(step, expected, found)
    return is_read and (len(_rows(expected)) > len(_rows(found)) or is_cut)


def _is_sorted_as_json(_schema, step, expected, found):
    """The same rows in another order."""
    is_sorted = "SELECT JSON *" in step.text and " IN " in step.text and " ORDER BY " in step.text
    if not is_sorted or expected.refused or found.refused:
        return False
    # What a LIMIT cuts off depends on the order.
    is_cut = " LIMIT " in step.text and len(_rows(expected)) == len(_rows(found))
    return is_cut or sorted(_rows(expected)) == sorted(_rows(found))


def _is_empty_page(_schema, _step, expected, found):
    """The same rows on pages, of which Cassandra has one without rows more."""
    filled = [[page[2] for page in _pages(answer) if page[2]] for answer in (expected, found)]
    return filled[0] == filled[1] and len(_pages(expected)) > len(_pages(found))


def _is_list_as_argument(schema, step, expected, found):
    """Both refuse, or one of them meets an overload that takes the list before one that does not."""
    refused = [answer.refused for answer in (expected, found) if answer.refused]
    names = re.findall(r"CREATE OR REPLACE FUNCTION (\w+)", " ".join(schema))
    is_overloaded = any(f"{name}(" in step.text and (names.count(name) > 1 or not name.startswith("fn")) for name in names)
    is_list = any(fault.startswith("2200 Unexpected receiver type '") for fault in refused)
    return is_list and "[" in step.text and (len(refused) == 2 or is_overloaded)


def _is_read_first(_schema, step, expected, found):
    """One statement of a batch changes an element of a list, or a condition does not hold, and what comes later cannot be bound."""
    is_unread = step.verb == "BATCH" and re.search("a list which is null|List index", expected.refused or "") is not None and found.refused is not None
    is_unmet = " IF " in step.text and not expected.refused and re.match("2200 Invalid (?:empty or null value for column|null value for list element)", found.refused or "") is not None
    return is_unread or is_unmet


def _is_type_in_vector(schema, step, expected, found):
    """Of a user type that something holds in a vector."""
    is_refused = re.search("type is being used in partition key by|as it is still used by", found.refused or "") is not None
    is_changed = step.text.startswith(("ALTER TYPE", "DROP TYPE"))
    return is_changed and is_refused and not expected.refused and any("vector<" in text for text in schema)


def _is_serial_without_rows(_schema, _step, expected, found):
    """Of several partitions."""
    is_refused = (expected.refused or "").startswith("2200 SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time")
    return is_refused and not found.refused and not _rows(found)


def _is_null_end(_schema, step, expected, found):
    """Of the rows that a DELETE names."""
    return step.verb in ("DELETE", "BATCH") and "DELETE" in step.text and not expected.refused and (found.refused or "").startswith("2200 Invalid null value in condition for column ")


def _is_time_of_part(schema, step, expected, _found):
    """Of an element or a field, as the argument of a function, a hint or an operator."""
    refused = (
        "none of its type|operation is not supported between|cannot be passed as argument|Cannot assign value|"
        r"requires a [a-z/ ]+ argument, but found argument .* of type frozen<list<(?:big)?int>>|constant \(.*\) for .* of type frozen<list<(?:big)?int>>"
    )
    is_taken = re.search(refused, expected.refused) if expected.refused else "('list', 'bigint')" in str(expected.lines) or "('list', 'int')" in str(expected.lines)
    # One of several overloads takes it.
    own = (name for text in schema for name in re.findall(r"FUNCTION (\w+)", text))
    is_taken = is_taken or any(re.search(rf"\b{name}\((?:ttl|writetime)\(\w+[\[.]", step.text) for name in own)
    return re.search(r"\b(?:ttl|writetime)\(\w+[\[.]", step.text) is not None and bool(is_taken)


def _is_before_gregorian(_schema, step, expected, found):
    """A date or timestamp before 15 October 1582, to which months are added."""
    return "mo" in step.text and _differ_only(expected, found, lambda kind, one, _: kind in ("date", "timestamp") and _day(kind, one) < _GREGORIAN)


def _is_day_before_1970(_schema, step, expected, found):
    """Of a time within the day."""
    is_made = re.search(r"(?i)as date\)|todate\(|as_?date\W*\(", step.text)
    is_json = "JSON" in step.text
    return is_made is not None and _differ_only(expected, found, lambda kind, one, other: kind == "date" and _day(kind, one) == _day(kind, other) + 1 not in range(2, _DAYS_MAX) or is_json and kind == "text")


def _number_of(kind, value):
    """What a value means that has several forms."""
    if kind == "boolean":
        return any(value)
    if kind == "varint":
        return int.from_bytes(value, "big", signed=True)
    if kind == "decimal":
        return int.from_bytes(value[4:], "big", signed=True) * Decimal(10) ** -int.from_bytes(value[:4], "big", signed=True)
    return None


def _day(kind, value):
    return int.from_bytes(value, "big") - 2**31 if kind == "date" else int.from_bytes(value, "big", signed=True) // 86_400_000


def _pages(answer):
    return [line for line in answer.lines if line[0] == "page"]


def _rows(answer):
    return [row for page in _pages(answer) for row in page[2]]


def _have_rows(step, expected, found):
    """Whether both answer a SELECT."""
    return step.is_read and not expected.refused and not found.refused


def _are_among(few, many):
    """Whether the rows of one answer are in the other."""
    return all(row in _rows(many) for row in _rows(few))


def _partition_key(schema):
    """The names of the columns in the inner parentheses."""
    return " ".join(re.findall(r"PRIMARY KEY \(\(([^)]*)\)", " ".join(schema))).split(", ")


def _differ_only(expected, found, may_differ):
    """Whether rows are alike but for values of which `may_differ`, given their type."""
    columns = [column for page in _pages(expected) for column in page[1]]
    rows = list(zip(_rows(expected), _rows(found)))
    if expected.refused or found.refused or len(_rows(expected)) != len(_rows(found)):
        return False
    return all(one == other or one and other and may_differ(column[1], one, other) for row in rows for column, one, other in zip(columns, *row))


def _is_equal_clustering(schema, _step, expected, found):
    """A value of the primary key, in another form of the same."""
    keys = " ".join(re.findall(r"PRIMARY KEY \((.*)\)", " ".join(schema)))

    def may_differ(column, *both):
        if column[0] == "[json]":
            one, other = (json.loads(value, parse_float=Decimal, parse_int=Decimal) for value in both)
            return one == other
        of_bytes = re.match(r"system\.(\w+)asblob\(", column[0])
        one, other = (_number_of(of_bytes[1] if of_bytes else column[1], value) for value in both)
        return one is not None and one == other and any(re.search(rf"\b{name}\b", keys) for name in re.findall(r"\w+", column[0]))

    columns = [column for page in _pages(expected) for column in page[1]]
    alike = not expected.refused and not found.refused and len(_rows(expected)) == len(_rows(found))
    return alike and all(one == other or one and other and may_differ(column, one, other) for rows in zip(_rows(expected), _rows(found)) for column, one, other in zip(columns, *rows))


def _is_order_of_columns(_schema, _step, expected, found):
    """Both name the same columns, of which several are restricted twice."""

    def in_order(refusal):
        return re.sub(r"\w+(?: ,\w+)+", lambda names: " ,".join(sorted(names[0].split(" ,"))), refusal or "")

    return expected.refused is not None and in_order(expected.refused) == in_order(found.refused)


def _is_order_of_users(_schema, _step, expected, found):
    """Both name the same functions or aggregates, of which several keep a definition from being dropped."""
    theirs, ours = (re.split("still (?:used|referenced) by (?:functions|aggregates) ", answer.refused or "") for answer in (expected, found))
    return len(theirs) == len(ours) == 2 and theirs[0] == ours[0] and sorted(theirs[1].split(", ")) == sorted(ours[1].split(", "))


def _is_beside_slice(_schema, step, expected, found):
    """Of a collection, a slice and something else are selected."""
    are_two = re.search(r"\[[^\]]*\.\.[^\]]*\].*\[|\[.*\[[^\]]*\.\.[^\]]*\]", step.text) is not None
    return are_two and _differ_only(expected, found, lambda kind, one, other: (kind.startswith("(") or one == b"") and len(one or b"") < len(other or b""))


KNOWN = [
    Known("docs/use/cql.md, syntax errors: the code is the same, the words are those of a generated parser", _is_syntax),
    Known("docs/use/cql.md, errors of compilation: the words of another compiler", _is_java),
    Known("docs/use/cql.md, columns in descending order: casts to their own type, functions of their type, operators between constants", _is_descending),
    Known("docs/use/cql.md, a bound list for a column in descending order: its elements are not looked at", _is_descending_list),
    Known("docs/use/cql.md, min and max of timeuuid: a type that no driver knows", _is_time_uuid),
    Known("docs/use/cql.md, min and max of timeuuid: what functions return, where a uuid is taken", _is_time_uuid_of_function),
    Known("docs/use/cql.md, names of results: fields of a literal in the order of hashes", _is_order_of_fields),
    Known("docs/use/cql.md, INSERT JSON with several faults: in the order of hashes", _is_order_of_members),
    Known("docs/use/cql.md, to_json and from_json: named as they were called first", _is_name_of_json),
    Known("docs/use/cql.md, COMPACT STORAGE without clustering columns: the hidden one", _is_hidden_column),
    Known("docs/use/cql.md, NaN: its sign is that of the machine", _is_sign_of_nan),
    Known("docs/use/cql.md, several conditions: which one is evaluated first is a matter of hashes", _is_order_of_conditions),
    Known("docs/use/cql.md, IF on elements of maps: compared by the type of the keys", _is_element_of_map),
    Known("docs/use/cql.md, an unset value in an IN that filters: empty values are found", _is_unset_member),
    Known("docs/use/cql.md, a selection with several faults: bound values are looked at first", _is_first_fault_of_selection),
    Known("docs/use/cql.md, a list with null in IF: refused before it is compared", _is_null_in_condition),
    Known("docs/use/cql.md, an unset value in IF … CONTAINS: compared as an empty one", _is_unset_in_contains),
    Known("docs/use/cql.md, batches with conditions that exclude each other: which refusal comes first", _is_mix_of_conditions),
    Known("docs/use/cql.md, pages of GROUP BY on a partition key of several columns: the state is refused", _is_own_state),
    Known("docs/use/cql.md, a view whose partition key is a clustering column in descending order: the order of IN", _is_view_of_descending),
    Known("docs/use/cql.md, log10 of a decimal: the scale of zero", _is_scale_of_logarithm),
    Known("the statement was forgotten, and asked as a QUERY", _is_asked_at_once),
    Known("docs/use/cql.md, a slice that null bounds, in pages", _is_bounded_by_null),
    Known("docs/use/cql.md, SAI: CONTAINS on a frozen collection beside what the index answers finds nothing", _is_beside_attached),
    Known("docs/use/cql.md, SAI on a column of the partition key: rows beside a deleted static row are missing", _is_beside_static_of_key),
    Known("docs/use/cql.md, SAI: a second index over SSTables with deleted static columns does not find all rows", _is_second_attached),
    Known("docs/use/cql.md, SASI on a static column: parts of the partition key are ignored", _is_static_of_sasi),
    Known("docs/use/cql.md, SASI: partitions that have only static columns", _is_static_alone_of_sasi),
    Known("docs/use/cql.md, SASI beside token(p) > t: the partition at t is found", _is_start_of_sasi),
    Known("docs/use/cql.md, ranges of inet through a storage-attached index: the order of the index", _is_range_of_inet),
    Known("docs/use/cql.md, SASI: empty values are not indexed", _is_empty_in_sasi),
    Known("docs/use/cql.md, SAI: empty values of numbers and times are not indexed", _is_empty_in_attached),
    Known("docs/use/cql.md, null in a frozen list of decimals, as JSON", _is_null_of_decimals),
    Known("docs/use/cql.md, SASI: an IN beside what the index answers is ignored", _is_beside_sasi),
    Known("docs/use/cql.md, CONTAINS on a static collection: what was removed is found", _is_removed_from_static),
    Known("docs/use/cql.md, SELECT JSON * of several partitions with ORDER BY: sorted by the text", _is_sorted_as_json),
    Known("docs/use/cql.md, a list as the argument of a function: which overload is asked first", _is_list_as_argument),
    Known("docs/use/cql.md, ALTER TYPE and DROP TYPE of a type in a vector", _is_type_in_vector),
    Known("docs/use/cql.md, a SERIAL read of several partitions and no row: answered", _is_serial_without_rows),
    Known("docs/use/cql.md, a DELETE of rows up to null: accepted", _is_null_end),
    Known("docs/use/cql.md, batches: rows are read for one statement before the next is bound", _is_read_first),
    Known("docs/use/cql.md, the time of an element: taken for a list", _is_time_of_part),
    Known("docs/use/cql.md, days of times before 1970: cut towards zero", _is_day_before_1970),
    Known("docs/use/cql.md, rows whose clusterings are equal by their type: which of them is shown", _is_equal_clustering),
    Known("docs/use/cql.md, pages without rows", _is_empty_page),
    Known("docs/use/cql.md, several columns restricted twice: they are named in the order of hashes", _is_order_of_columns),
    Known("docs/use/cql.md, DROP of what several functions use: they are named in the order of their creation", _is_order_of_users),
    Known("docs/use/cql.md, an element or a slice beside a slice: empty values", _is_beside_slice),
    Known("docs/use/cql.md, months added to dates before 1582: by the Julian calendar", _is_before_gregorian),
    Known("docs/use/cql.md, an empty tinyint, a decimal without digits in a clustering", _is_incomparable),
    Known("docs/use/cql.md, syntax errors: the code is the same, the words are those of a generated parser", _is_torn_character),
    Known("docs/use/cql.md, a marker with a hint, prepared before ALTER TYPE: the fields of then", _is_hint_of_altered),
    Known("docs/use/cql.md, a QUERY without values for its markers, of a write that cannot be", _is_without_values),
    Known("docs/use/cql.md, null in a list of the partition key, in a statement with a condition", _is_null_in_key),
    Known("Cassandra fails: a Java exception, or a read or write failure by one", _is_internal),
]


def explained(schema, step, expected, found):
    """The reason why two answers may differ, if there is one."""
    expected, found = comparable(expected), comparable(found)
    return next((known.reason for known in KNOWN if known.explains(schema, step, expected, found)), None)


def comparable(answer):
    """Without what no two runs have in common."""
    # Signatures come in the order of a Java hash set.
    refused = answer.refused and answer.refused.split("signatures")[0]
    return answer._replace(refused=refused, lines=tuple(map(_line, answer.lines)))


def _line(line):
    if line[0] != "page":
        return line
    _, columns, rows, warnings, more = line
    return "page", columns, tuple(tuple(map(_timeless, columns, row)) for row in rows), warnings, more


def _timeless(column, value):
    """A value without what the server's clock has set: times of writing, and seconds that are left."""
    name, kind = column
    if value is None:
        return None
    # Sums and the like of seconds that are left.
    if "(ttl(" in name:
        return b"seconds"
    # A function may take it for a time.
    if "writetime(" in name and kind in ("bigint", "time", "timestamp") and int.from_bytes(value, "big", signed=True) > _NAMED_AT_MOST:
        return b"clock"
    if name == "[json]":
        return _SECONDS.sub(b"seconds", _CLOCKS.sub(b"clock", value))
    if kind in ("bigint", "int"):
        return _number(value)
    if kind in ("('list', 'bigint')", "('list', 'int')"):
        return tuple(map(_number, _elements(value)))
    return value


def _elements(value):
    """Those of a list; null has no bytes."""
    place = 4
    while place < len(value):
        size = max(int.from_bytes(value[place : place + 4], "big", signed=True), 0)
        yield value[place + 4 : place + 4 + size]
        place += 4 + size


def _number(value):
    number = int.from_bytes(value, "big", signed=True)
    if len(value) == 8 and _CLOCK_AT_LEAST < number < 3 * _CLOCK_AT_LEAST:
        return b"clock"
    return b"seconds" if len(value) == 4 and _LEAST_LEFT < number <= 100_000 else value
