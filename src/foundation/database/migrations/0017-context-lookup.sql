-- The same hashes as before, by a function whose plan a connection keeps: the one in SQL was planned anew by each statement that
-- writes an account, and took half of its time. Beside pg_catalog it may name nothing: index builds run without a search_path.
create or replace function context_lookup_keys(installation uuid, context jsonb) returns bigint[]
language plpgsql immutable parallel safe as $$
declare
  prefix text;
  content jsonb;
  field text;
  keys bigint[] := '{}';
begin
  for field, content in select * from jsonb_each(context) loop
    -- As context_lookup_key.
    prefix := installation::text || length(field)::text || ':' || field;
    case jsonb_typeof(content)
      when 'string', 'number' then keys := keys || hashtextextended(prefix || (content #>> '{}'), 0);
      when 'array' then keys := keys || array(
        select hashtextextended(prefix || (value #>> '{}'), 0)
        from jsonb_array_elements(content) with ordinality as item (value, position)
        where position <= 1000 and jsonb_typeof(value) in ('string', 'number'));
      else null;
    end case;
  end loop;
  return keys;
end
$$;
