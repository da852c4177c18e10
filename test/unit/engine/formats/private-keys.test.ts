import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fieldList } from '../../../../src/engine/formats/credential/fields.ts'
import { collectFields, type Field } from '../../../../src/engine/formats/index.ts'

const FIELDS = fieldList().parse([
  { name: 'client_email', required: true, format: 'email' },
  { name: 'key', type: 'textarea', is_secret: true, required: true, format: 'private_key' },
]) as Field[]

const pem = (type: 'pkcs1' | 'pkcs8') =>
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type, format: 'pem' }).toString().trim()
const KEY = pem('pkcs8')
const EC_KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ type: 'sec1', format: 'pem' })
  .toString()
  .trim()
const ACCOUNT = { type: 'service_account', client_email: 'sync@acme.iam.gserviceaccount.com', private_key: `${KEY}\n` }
const EMAIL = 'given@acme.example'

function collect(key: string, email: string | undefined = EMAIL) {
  return collectFields(FIELDS, { key, ...(email === undefined ? {} : { client_email: email }) }, 'fields')
}

describe('a private key', () => {
  const forms: [what: string, pasted: string][] = [
    ['as it is', KEY],
    ['with blanks around it', `\n  ${KEY}  \n`],
    ['in one line, as an input of one line leaves it', KEY.replaceAll('\n', ' ')],
    ['in one line without blanks', KEY.replaceAll('\n', '')],
    ['with written line breaks', KEY.replaceAll('\n', '\\n')],
    ['with written line breaks and quotes', `"${KEY.replaceAll('\n', '\\n')}\\n"`],
    ['with CRLF', KEY.replaceAll('\n', '\r\n')],
    ['with CR', KEY.replaceAll('\n', '\r')],
    ['indented', KEY.replaceAll('\n', '\n    ')],
    ['without the markers', KEY.split('\n').slice(1, -1).join('\n')],
    ['as the JSON of a service account', JSON.stringify(ACCOUNT)],
    ['as that JSON over lines', JSON.stringify(ACCOUNT, null, 2)],
  ]

  it.each(forms)('%s is the same key', (_what, pasted) => {
    expect(collect(pasted)).toEqual({ kind: 'collected', secrets: { key: KEY }, visible: { client_email: EMAIL } })
  })

  it.each([
    ['PKCS #1', pem('pkcs1')],
    ['SEC 1', EC_KEY],
  ])('of %s keeps its kind', (_what, key) => {
    const collected = collect(key.replaceAll('\n', ' '))
    if (collected.kind === 'invalid') throw new Error('it is rejected')
    expect(createPrivateKey(String(collected.secrets.key)).equals(createPrivateKey(key))).toBe(true)
  })

  it('brings the e-mail address of its service account, unless another one is given', () => {
    const visible = (email?: string) =>
      collectFields(FIELDS, { key: JSON.stringify(ACCOUNT), ...(email && { client_email: email }) }, 'fields')
    expect(visible()).toMatchObject({ visible: { client_email: ACCOUNT.client_email } })
    expect(visible(EMAIL)).toMatchObject({ visible: { client_email: EMAIL } })
  })

  it.each([
    ['cut', KEY.slice(0, -200)],
    ['with a character too many', KEY.replace('MII', 'M!II')],
    ['public', '-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----'],
    ['a word', 'secret'],
    ['JSON of something else', '{"key": "x"}'],
  ])('that is %s is said to be that, before anything is sent', (_what, pasted) => {
    expect(collect(pasted)).toMatchObject({
      kind: 'invalid',
      violations: [{ field: 'fields.key', rule: 'string.private_key', description: expect.stringContaining('BEGIN') }],
    })
  })
})
