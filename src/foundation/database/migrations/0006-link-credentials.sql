-- Keys of `credentials` that the customer of a link may choose from. Null: all.
alter table link_session add column allowed_credentials text[] check (cardinality(allowed_credentials) > 0);
