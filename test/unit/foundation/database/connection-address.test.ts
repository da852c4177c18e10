import { expect, it } from 'vitest'
import { parseDatabaseUrl } from '../../../../src/foundation/database/connection-address.ts'

it.each([
  ['postgres://u:p@h:6432/d', { user: 'u', password: 'p', host: 'h', port: 6432, database: 'd', ssl: false }],
  ['postgresql://u@h', { user: 'u', host: 'h', ssl: false }],
  ['postgres://u@/d?host=%2Frun%2Fpg&port=5433', { user: 'u', host: '/run/pg', port: 5433, database: 'd', ssl: false }],
  [
    'postgres://u:p%23%2F%3F%25%40@[::1]:5432/d',
    { user: 'u', password: 'p#/?%@', host: '::1', port: 5432, database: 'd', ssl: false },
  ],
  ['postgres://u:p@ss:w@h/d', { user: 'u', password: 'p@ss:w', host: 'h', database: 'd', ssl: false }],
  ['postgres://u@h/d?sslmode=disable', { user: 'u', host: 'h', database: 'd', ssl: false }],
  ['postgres://u@h/d?sslmode=require', { user: 'u', host: 'h', database: 'd', ssl: { rejectUnauthorized: true } }],
  [
    'postgres://u@h/d?sslmode=verify-full&sslrootcert=system',
    { user: 'u', host: 'h', database: 'd', ssl: { rejectUnauthorized: true } },
  ],
  ['postgres://u@h/d?sslmode=no-verify', { user: 'u', host: 'h', database: 'd', ssl: { rejectUnauthorized: false } }],
  [
    'postgres://u@h/d?ssl=true&channel_binding=require',
    { user: 'u', host: 'h', database: 'd', enableChannelBinding: true, ssl: { rejectUnauthorized: true } },
  ],
  ['postgres://u@h/d?pgbouncer=true', { user: 'u', host: 'h', database: 'd', ssl: false }],
])('%s is read', (url, config) => {
  expect(parseDatabaseUrl(url)).toEqual(config)
})

it('verify-ca does not compare the name of the certificate', () => {
  expect(parseDatabaseUrl('postgres://u@h/d?sslmode=verify-ca').ssl).toMatchObject({
    rejectUnauthorized: true,
    checkServerIdentity: expect.any(Function),
  })
})

it.each([
  ['postgres://u:SECRET#1@h/d', /%23/],
  ['postgres://u:12#SECRET@h/d', /%23/],
  ['postgres://u:SECRET/1@h/d', /%2F/],
  ['postgres://u:12/SECRET@h/d', /%2F/],
  ['postgres://u:SECRET?1@h/d', /%3F/],
  ['postgres://u:12?SECRET@h/d', /%3F/],
  ['postgres://u:SECRET%zz@h/d', /%25/],
  ['postgres://u:SECRET%@h/d', /%25/],
  ['postgres://u:SECRET@h1:5432,h2:5432/d', /several hosts/],
  ['postgres://u:SECRET@h1,h2/d', /several hosts/],
  ['postgres://u:SECRET@/d?host=h1,h2', /several hosts/],
  ['postgres://u:SECRET@h:port/d', /host:port/],
  ['postgres://u:SECRET@h:99999/d', /host:port/],
  ['postgres://u:SECRET@h/d?sslmode=verify', /unknown sslmode verify: it takes disable, .*verify-full/],
  ['postgres://u:SECRET@h/d?sslmode=', /unknown sslmode/],
  ['postgres://u:SECRET@h/d?sslmod=require', /unknown parameter sslmod.*sslmode/],
  ['postgres://u:SECRET@h/d?sslMode=verify-full', /unknown parameter sslMode.*sslmode/],
  ['postgres://u:SECRET@h/d?schema=app', /unknown parameter schema/],
  ['postgres://u:SECRET@h/d?target_session_attrs=read-write', /unknown parameter target_session_attrs/],
  ['postgres://u:SECRET@h/d?sslmode=require&sslrootcert=/nowhere.pem', /sslrootcert \/nowhere\.pem.*ENOENT/],
])('%s is rejected, without its password', (url, why) => {
  expect(() => parseDatabaseUrl(url)).toThrow(why)
  expect(() => parseDatabaseUrl(url)).not.toThrow(/SECRET/)
})
