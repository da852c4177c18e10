-- The key of the definition's `credentials` by which an account is connected. `authentication_method` has four values, and several
-- credentials may have the same one. Null, as processes of the version before write it: the key is the method.
alter table integrated_account add column credential text check (credential ~ '^[a-z0-9_]{1,64}$');
alter table link_session add column credential text check (credential ~ '^[a-z0-9_]{1,64}$');

-- So far a definition could offer one credential of a method; only those of `vendor_oauth` have another key than the method.
update integrated_account account
set credential = found.key
from environment_integration installation
  join integration on integration.id = installation.integration_id
  cross join lateral (
    select key from unnest(array['vendor_oauth', 'oauth1', 'jwt']) with ordinality as keys (key, position)
    where integration.config -> 'credentials' -> key is not null or installation.override -> 'credentials' -> key is not null
      or integration.config -> 'credentials' ->> 'format' = key or installation.override -> 'credentials' ->> 'format' = key
    order by position limit 1
  ) found
where account.authentication_method = 'vendor_oauth'
  and installation.environment_id = account.environment_id and installation.id = account.environment_integration_id;
