"""
A shop on cqlengine, the object mapper of the Python driver: indexed columns, collections, user types, counters, static columns,
lightweight transactions, batches, TTLs and paging. Each test has its own rows.
"""

import datetime
import decimal
import os
import time
import uuid

import pytest
from cassandra import ReadFailure
from cassandra.cqlengine import columns, connection, functions, management, query
from cassandra.cqlengine.models import Model
from cassandra.cqlengine.query import BatchQuery, BatchType, ContextQuery, DoesNotExist, LWTException, MultipleObjectsReturned
from cassandra.cqlengine.usertype import UserType
from cassandra.util import uuid_from_time

KEYSPACE = "shop"
DAY = datetime.date(2026, 5, 4)
NOON = datetime.datetime(2026, 5, 4, 12, 0, 0)


class Address(UserType):
    street = columns.Text()
    city = columns.Text()
    zip = columns.Integer()


class Customer(Model):
    id = columns.UUID(primary_key=True, default=uuid.uuid4)
    name = columns.Text(index=True)
    email = columns.Text(index=True)
    age = columns.Integer(index=True)
    city = columns.Text()
    home = columns.UserDefinedType(Address)
    addresses = columns.Map(columns.Text, columns.UserDefinedType(Address))
    tags = columns.Set(columns.Text, index=True)
    visits = columns.List(columns.DateTime)
    preferences = columns.Map(columns.Text, columns.Integer)


class Product(Model):
    shop = columns.Text(partition_key=True)
    category = columns.Text(partition_key=True)
    sku = columns.Integer(primary_key=True, clustering_order="DESC")
    title = columns.Text(required=True)
    price = columns.Decimal(index=True)
    added = columns.Date()
    opens = columns.Time()
    weight = columns.Double()
    photo = columns.Blob()
    is_sold = columns.Boolean(default=False)
    stock = columns.SmallInt()
    rank = columns.TinyInt()
    sold = columns.BigInt()
    large = columns.VarInt()
    ratio = columns.Float()
    at = columns.Inet()
    size = columns.Tuple(columns.Integer, columns.Text)


class Order(Model):
    customer = columns.UUID(partition_key=True)
    placed = columns.TimeUUID(primary_key=True, clustering_order="DESC")
    vip = columns.Boolean(static=True)
    total = columns.Integer()
    state = columns.Text(index=True)


class Hits(Model):
    page = columns.Text(primary_key=True)
    day = columns.Date(primary_key=True)
    views = columns.Counter()
    buys = columns.Counter()


class Animal(Model):
    __table_name__ = "animals"
    owner = columns.Text(partition_key=True)
    name = columns.Text(primary_key=True)
    kind = columns.Text(discriminator_column=True)


class Cat(Animal):
    __discriminator_value__ = "cat"
    lives = columns.Integer()


class Dog(Animal):
    __discriminator_value__ = "dog"
    tricks = columns.List(columns.Text)


class Expiring(Model):
    __options__ = {"default_time_to_live": 3600, "gc_grace_seconds": 60, "compaction": {"class": "LeveledCompactionStrategy"}}
    id = columns.Integer(primary_key=True)
    value = columns.Text(db_field="v")


MODELS = (Customer, Product, Order, Hits, Cat, Dog, Expiring)


@pytest.fixture(scope="session", autouse=True)
def tables():
    connection.setup([os.environ["APP_HOST"]], KEYSPACE, port=int(os.environ["APP_PORT"]), protocol_version=5, connect_timeout=30)
    os.environ["CQLENG_ALLOW_SCHEMA_MANAGEMENT"] = "1"
    management.create_keyspace_simple(KEYSPACE, 1)
    for model in MODELS:
        management.sync_table(model)
    yield
    connection.unregister_connection("default")


def at_minute(minute):
    return uuid_from_time(NOON + datetime.timedelta(minutes=minute), node=1, clock_seq=1)


def when_built(search):
    """A new index fails searches until it has the rows that were there before it."""
    for _ in range(100):
        try:
            return search()
        except ReadFailure:
            time.sleep(0.1)
    return search()


@pytest.fixture
def session():
    return connection.get_session()


@pytest.fixture
def shop(request):
    """A partition of products that only this test has."""
    name = request.node.name
    for sku in range(20):
        Product.create(shop=name, category="tea", sku=sku, title=f"tea {sku}", price=decimal.Decimal(sku) / 4)
    return Product.objects(shop=name, category="tea")


def test_schema_has_the_indexes(session):
    management.sync_table(Customer)
    indexes = session.cluster.metadata.keyspaces[KEYSPACE].tables["customer"].indexes
    assert {index.index_options["target"] for index in indexes.values()} == {"name", "email", "age", "values(tags)"}


def test_options_are_kept(session):
    table = session.cluster.metadata.keyspaces[KEYSPACE].tables["expiring"]
    assert table.options["default_time_to_live"] == 3600 and table.options["gc_grace_seconds"] == 60
    assert table.options["compaction"]["class"].endswith("LeveledCompactionStrategy")


def test_sync_adds_a_column_and_an_index(session):
    class First(Model):
        __table_name__ = "growing"
        id = columns.Integer(primary_key=True)

    class Second(First):
        __table_name__ = "growing"
        colour = columns.Text(index=True)

    management.sync_table(First)
    First.create(id=1)
    management.sync_table(Second)
    Second.create(id=2, colour="red")
    assert [row.id for row in when_built(lambda: list(Second.objects(colour="red")))] == [2]
    assert Second.get(id=1).colour is None


def test_user_type_grows(session):
    class Wide(UserType):
        __type_name__ = "wide"
        a = columns.Integer()

    management.sync_type(KEYSPACE, Wide)

    class Wider(UserType):
        __type_name__ = "wide"
        a = columns.Integer()
        b = columns.Text()

    management.sync_type(KEYSPACE, Wider)
    assert session.cluster.metadata.keyspaces[KEYSPACE].user_types["wide"].field_names == ["a", "b"]


def test_every_type_comes_back():
    given = {
        "title": "größer", "price": decimal.Decimal("-12.3450"), "added": DAY, "opens": datetime.time(8, 30, 1, 5), "weight": 0.1, "photo": b"\0\xff",
        "is_sold": True, "stock": -300, "rank": -7, "sold": 2**40, "large": -(10**30), "ratio": 0.5, "at": "2001:db8::1", "size": (3, "cm"),
    }
    Product.create(shop="types", category="all", sku=1, **given)
    row = Product.get(shop="types", category="all", sku=1)
    for name, value in given.items():
        found = getattr(row, name)
        assert (found.date() if name == "added" else found.time() if name == "opens" else found) == value, name


def test_index_on_text_and_number():
    for place in range(5):
        Customer.create(name="indexed", email=f"{place}@example.org", age=90 + place)
    assert Customer.objects(name="indexed").count() == 5
    assert Customer.objects(email="3@example.org").get().age == 93
    assert [row.email for row in Customer.objects(age=91)] == ["1@example.org"]
    assert Customer.objects(name="indexed").filter(age=94).allow_filtering().count() == 1


def test_index_follows_an_update_and_a_delete():
    row = Customer.create(name="before", age=1)
    row.update(name="after")
    assert Customer.objects(name="before").count() == 0
    assert Customer.objects(name="after").get().id == row.id
    row.delete()
    assert Customer.objects(name="after").count() == 0


def test_index_on_a_collection():
    Customer.create(name="c1", tags={"red", "rare"})
    two = Customer.create(name="c2", tags={"rare"})
    assert {row.name for row in Customer.objects(tags__contains="rare")} == {"c1", "c2"}
    Customer.objects(id=two.id).update(tags__remove={"rare"}, tags__add={"blue"})
    assert {row.name for row in Customer.objects(tags__contains="rare")} == {"c1"}
    assert {row.name for row in Customer.objects(tags__contains="blue")} == {"c2"}


def test_index_with_filtering_and_ranges():
    for place in range(10):
        Customer.create(name="ranged", age=place, city="odd" if place % 2 else "even")
    rows = Customer.objects(name="ranged", age__gt=3, age__lte=8).allow_filtering()
    assert sorted(row.age for row in rows) == [4, 5, 6, 7, 8]
    assert sorted(row.age for row in Customer.objects(name="ranged", city="odd").allow_filtering()) == [1, 3, 5, 7, 9]


def test_index_within_a_partition():
    customer = uuid.uuid4()
    for place in range(12):
        Order.create(customer=customer, placed=at_minute(place), total=place, state="open" if place % 3 else "paid")
    assert [row.total for row in Order.objects(customer=customer, state="paid")] == [9, 6, 3, 0]
    assert Order.objects(state="paid").filter(customer=customer).count() == 4


def test_query_without_an_index_is_refused(session):
    with pytest.raises(Exception, match="ALLOW FILTERING"):
        list(session.execute(f"SELECT * FROM {KEYSPACE}.customer WHERE city = 'x'"))
    with pytest.raises(query.QueryException):
        list(Customer.objects(city="x"))


def test_clustering_order_slices_and_limits(shop):
    assert [row.sku for row in shop] == list(range(19, -1, -1))
    assert [row.sku for row in shop.order_by("sku")][:3] == [0, 1, 2]
    assert [row.sku for row in shop.filter(sku__gte=5).filter(sku__lt=8)] == [7, 6, 5]
    assert [row.sku for row in shop.filter(sku__in=[3, 17, 99])] == [17, 3]
    assert [row.sku for row in shop.limit(4)] == [19, 18, 17, 16]
    assert [row.sku for row in shop[2:5]] == [17, 16, 15]
    assert shop.first().sku == 19


def test_get_of_none_and_of_several(shop):
    with pytest.raises(DoesNotExist):
        shop.filter(sku=100).get()
    with pytest.raises(MultipleObjectsReturned):
        shop.get()


def test_paging(shop):
    assert [row.sku for row in shop.fetch_size(3)] == list(range(19, -1, -1))


def test_paging_by_token():
    for place in range(30):
        Expiring.create(id=1000 + place, value="page")
    seen, rows = set(), list(Expiring.objects.limit(7))
    while rows:
        assert not seen & {row.id for row in rows}
        seen |= {row.id for row in rows}
        rows = list(Expiring.objects.limit(7).filter(pk__token__gt=functions.Token(rows[-1].pk)))
    assert seen >= set(range(1000, 1030))


def test_columns_only_deferred_and_distinct(shop):
    assert list(shop.values_list("sku", flat=True))[:2] == [19, 18]
    assert list(shop.only(["sku", "title"]))[0].title == "tea 19"
    assert shop.defer(["photo"]).first().price == decimal.Decimal("4.75")
    assert len([1 for row in Product.objects.distinct(["shop", "category"]) if row.shop == shop.first().shop]) == 1


def test_time_uuid_functions():
    customer = uuid.uuid4()
    for minute in range(10):
        Order.create(customer=customer, placed=at_minute(minute), total=minute)
    since, until = (functions.MinTimeUUID(NOON + datetime.timedelta(minutes=m)) for m in (3, 6))
    rows = Order.objects(customer=customer, placed__gte=since, placed__lt=until)
    assert [row.total for row in rows] == [5, 4, 3]
    rows = Order.objects(customer=customer, placed__gt=functions.MaxTimeUUID(NOON + datetime.timedelta(minutes=7)))
    assert [row.total for row in rows] == [9, 8]


def test_static_columns():
    customer = uuid.uuid4()
    Order.create(customer=customer, placed=at_minute(0), total=1)
    Order.create(customer=customer, placed=at_minute(1), total=2, vip=True)
    assert [row.vip for row in Order.objects(customer=customer)] == [True, True]


def test_collections_are_changed_in_place():
    row = Customer.create(name="collections", tags={"a"}, visits=[NOON], preferences={"x": 1})
    find = Customer.objects(id=row.id)
    later = NOON + datetime.timedelta(hours=1)
    find.update(tags__add={"b"}, visits__append=[later], preferences__update={"y": 2})
    find.update(visits__prepend=[later], preferences__update={"x": None})
    found = Customer.get(id=row.id)
    assert found.tags == {"a", "b"} and found.visits == [later, NOON, later] and found.preferences == {"y": 2}
    found.tags.remove("a")
    found.visits.append(NOON)
    del found.preferences["y"]
    found.preferences["z"] = 3
    found.save()
    found = Customer.get(id=row.id)
    assert found.tags == {"b"} and found.visits == [later, NOON, later, NOON] and found.preferences == {"z": 3}
    find.update(tags=None, visits=None)
    found = Customer.get(id=row.id)
    assert found.tags == set() and found.visits == []


def test_user_types():
    home = Address(street="Hauptstraße 1", city="Wien", zip=1010)
    row = Customer.create(name="u", home=home, addresses={"work": Address(city="Linz")})
    found = Customer.get(id=row.id)
    assert found.home == home and found.addresses["work"].city == "Linz" and found.addresses["work"].zip is None
    found.home = Address(street=found.home.street, city=found.home.city, zip=1020)
    found.save()
    assert Customer.get(id=row.id).home.zip == 1020


def test_counters():
    Hits.objects(page="index", day=DAY).update(views=3)
    row = Hits.get(page="index", day=DAY)
    row.views += 4
    row.buys += 1
    row.save()
    row.update(views=row.views - 2)
    assert (Hits.get(page="index", day=DAY).views, Hits.get(page="index", day=DAY).buys) == (5, 1)


def test_counters_in_a_batch():
    with BatchQuery(batch_type=BatchType.Unlogged) as batch:
        for step in range(3):
            Hits.batch(batch).create(page="batched", day=DAY, views=step + 1)
    assert Hits.get(page="batched", day=DAY).views == 6


def test_insert_if_not_exists():
    key = uuid.uuid4()
    Customer.if_not_exists().create(id=key, name="first")
    with pytest.raises(LWTException) as refused:
        Customer.if_not_exists().create(id=key, name="second")
    assert refused.value.existing["[applied]"] is False and refused.value.existing["name"] == "first"


def test_update_if():
    row = Customer.create(name="conditional", age=1)
    Customer.objects(id=row.id).iff(age=1).update(age=2)
    with pytest.raises(LWTException) as refused:
        Customer.objects(id=row.id).iff(age=1, name="conditional").update(age=3)
    assert refused.value.existing == {"[applied]": False, "age": 2, "name": "conditional"}
    Customer.objects(id=row.id).if_exists().update(age=4)
    assert Customer.get(id=row.id).age == 4


def test_update_and_delete_if_exists():
    with pytest.raises(LWTException):
        Customer.objects(id=uuid.uuid4()).if_exists().update(name="nobody")
    row = Customer.create(name="goes")
    Customer.objects(id=row.id).if_exists().delete()
    with pytest.raises(LWTException):
        Customer.objects(id=row.id).if_exists().delete()


def test_delete_if_a_column_has_a_value():
    row = Customer.create(name="kept", age=5)
    with pytest.raises(LWTException):
        Customer.objects(id=row.id).iff(age=6).delete()
    Customer.objects(id=row.id).iff(age=5).delete()
    assert Customer.objects(id=row.id).count() == 0


def test_batch_with_conditions():
    customer = uuid.uuid4()
    with BatchQuery() as batch:
        for place in range(2):
            Order.batch(batch).if_not_exists().create(customer=customer, placed=at_minute(place), total=place)
    with pytest.raises(LWTException):
        with BatchQuery() as batch:
            for place in range(1, 3):
                Order.batch(batch).if_not_exists().create(customer=customer, placed=at_minute(place), total=9)
    assert [row.total for row in Order.objects(customer=customer)] == [1, 0]


def test_batch_over_tables_and_timestamp():
    key = uuid.uuid4()
    with BatchQuery(timestamp=NOON) as batch:
        Customer.batch(batch).create(id=key, name="old")
        Order.batch(batch).create(customer=key, placed=at_minute(0), total=1)
    Customer.objects(id=key).timestamp(NOON - datetime.timedelta(days=1)).update(name="older")
    assert Customer.get(id=key).name == "old"
    with BatchQuery() as batch:
        Customer.objects(id=key).batch(batch).delete()
        Order.objects(customer=key).batch(batch).delete()
    assert Customer.objects(id=key).count() == 0 and Order.objects(customer=key).count() == 0


def test_ttl(session):
    Expiring.create(id=1, value="default")
    Expiring.ttl(50).create(id=2, value="own")
    times = {row["id"]: row["ttl(v)"] for row in session.execute("SELECT id, ttl(v) FROM shop.expiring WHERE id IN (1, 2)")}
    assert 3500 < times[1] <= 3600 and 0 < times[2] <= 50


def test_context_and_polymorphic_models():
    with ContextQuery(Cat, keyspace=KEYSPACE) as cats:
        cats.create(owner="o", name="tom", lives=9)
    Dog.create(owner="o", name="rex", tricks=["sit", "roll"])
    assert [(row.name, row.kind, type(row).__name__) for row in Animal.objects(owner="o")] == [("rex", "dog", "Dog"), ("tom", "cat", "Cat")]
    assert [(row.name, row.tricks) for row in Dog.objects(owner="o", kind="dog").allow_filtering()] == [("rex", ["sit", "roll"])]
    assert Cat.objects(owner="o", name="tom").get().lives == 9


def test_delete_of_a_range_and_of_columns(shop):
    shop.filter(sku__gte=10).delete()
    assert [row.sku for row in shop.all()] == list(range(9, -1, -1))
    shop.filter(sku=3).update(price=None)
    assert shop.filter(sku=3).get().price is None


def test_aggregates(session, shop):
    text = "SELECT count(*), min(price), max(price), sum(sku) FROM shop.product WHERE shop = %s AND category = 'tea'"
    assert tuple(session.execute(text, [shop.first().shop]).one().values()) == (20, decimal.Decimal(0), decimal.Decimal("4.75"), 190)


def test_drop_of_tables():
    class Gone(Model):
        id = columns.Integer(primary_key=True)
        colour = columns.Text(index=True)

    management.sync_table(Gone)
    management.drop_table(Gone)
    management.drop_table(Gone)
    management.sync_table(Gone)
    assert Gone.objects(colour="red").count() == 0
