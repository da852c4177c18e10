-- Makes the partitions of today and the next three days (UTC) of a table that is partitioned by days; later ones are made
-- by the maintenance of partitions. Bounds are times, or of a uuid column the smallest UUIDv7 of a day: its first 48 bits
-- are milliseconds since 1970.
create function create_first_days(parent regclass, storage text default '') returns void language plpgsql as $$
declare
  is_uuid boolean := (select format_type(a.atttypid, null) = 'uuid' from pg_partitioned_table p
    join pg_attribute a on a.attrelid = p.partrelid and a.attnum = p.partattrs[0] where p.partrelid = parent);
  days date[] := array(select (now() at time zone 'UTC')::date + ahead from generate_series(0, 4) ahead);
  bounds text[] := array(
    select case when is_uuid
      then lpad(to_hex((extract(epoch from day) * 1000)::bigint), 12, '0') || repeat('0', 20)
      else day::text || 'Z' end
    from unnest(days) with ordinality as listed (day, place) order by place
  );
begin
  for n in 1..4 loop
    execute format('create table %s_%s partition of %s for values from (%L) to (%L) %s',
      parent, to_char(days[n], 'YYYYMMDD'), parent, bounds[n], bounds[n + 1], storage);
  end loop;
end $$;
