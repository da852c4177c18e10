import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { assertKnownVariables, readConfig } from '../../../../src/server/config/config.ts'
import { scratchDirectory } from '../../../support/scratch-files.ts'

const directory = mkdtempSync(join(scratchDirectory(), 'patchbay-config-'))
afterAll(() => rmSync(directory, { recursive: true }))
const file = (text: string) => {
  const path = join(directory, crypto.randomUUID())
  writeFileSync(path, text)
  return path
}

it.each([
  ['a line break at the end', { DATABASE_URL: 'postgres://u@h/d\n' }, { databaseUrl: 'postgres://u@h/d' }],
  ['blanks around', { PATCHBAY_PUBLIC_URL: ' https://x.example/\n' }, { publicUrl: 'https://x.example' }],
  ['a file of a secret', { DATABASE_URL_FILE: file('postgres://u@h/d\n') }, { databaseUrl: 'postgres://u@h/d' }],
  ['the port of a service of Kubernetes', { PATCHBAY_PORT: 'tcp://10.0.0.7:8080' }, { port: 8080 }],
  ['an empty text', { PATCHBAY_PORT: '', PATCHBAY_PUBLIC_URL: '' }, { port: 8080, publicUrl: undefined }],
  ['a proxy as curl takes it', { https_proxy: 'proxy:3128' }, { httpsProxy: 'http://proxy:3128' }],
  ['a proxy in capitals first', { HTTP_PROXY: 'http://a:1', http_proxy: 'http://b:1' }, { httpProxy: 'http://a:1' }],
  ['no proxy', {}, { httpsProxy: '', httpProxy: '', noProxy: '' }],
])('%s is read', (_, environment, expected) => {
  expect(readConfig(environment)).toMatchObject(expected)
})

it.each([
  [{ DATABASE_URL: '' }, 'DATABASE_URL is empty: set it, or unset it'],
  [{ DATABASE_URL: ' \n' }, 'DATABASE_URL is empty'],
  [{ DATABASE_URL_FILE: '' }, 'DATABASE_URL_FILE is empty'],
  [{ PATCHBAY_ENCRYPTION_KEYS: '' }, 'PATCHBAY_ENCRYPTION_KEYS is empty'],
  [{ PATCHBAY_TLS_CERT: '', PATCHBAY_TLS_KEY: '/k' }, 'PATCHBAY_TLS_CERT is empty'],
  [{ DATABASE_URL_FILE: '/nowhere/db' }, 'DATABASE_URL_FILE /nowhere/db cannot be read: ENOENT'],
  [{ DATABASE_URL_FILE: file('\n') }, 'takes postgres://user@host/database'],
  [{ DATABASE_URL_FILE: file('x'), DATABASE_URL: 'postgres://u@h/d' }, 'set one of them'],
  [{ HTTPS_PROXY: 'socks5h://proxy:1080' }, 'HTTPS_PROXY takes http://[user:password@]host:port'],
])('%o is rejected: %s', (environment, message) => {
  expect(() => readConfig(environment)).toThrow(message)
})

it('variables that Kubernetes sets for a service are no misspelt settings', () => {
  const links = {
    PATCHBAY_POSTGRESQL_PORT: 'tcp://10.0.0.7:5432',
    PATCHBAY_POSTGRESQL_PORT_5432_TCP_ADDR: '10.0.0.7',
    PATCHBAY_SERVICE_HOST: '10.0.0.7',
  }
  expect(() => assertKnownVariables(links)).not.toThrow()
  expect(() => assertKnownVariables({ PATCHBAY_POSTGRESQL_PORT: '5432' })).toThrow('PATCHBAY_POSTGRESQL_PORT')
})
