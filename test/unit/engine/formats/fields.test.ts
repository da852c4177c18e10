import { describe, expect, test } from 'vitest'
import { FIELD_RULES } from '../../../../src/engine/formats/credential/check-field-value.ts'
import { fieldList } from '../../../../src/engine/formats/credential/fields.ts'
import { collectFields, isSecretField, listFormFields } from '../../../../src/engine/formats/index.ts'
import { type Json, JsonNumber, type JsonObject } from '../../../../src/foundation/json/index.ts'

const KEY = '-----BEGIN PRIVATE KEY-----\nMIIBVQ==\n-----END PRIVATE KEY-----'
const ONE_LINE_KEY = KEY.replaceAll('\n', '\\n')
const CHOICES = [{ value: 'eu', label: 'Europe' }, { value: 'us' }]

function collect(field: JsonObject, given: Json, source = {}) {
  return collectFields(fieldList().parse([{ name: 'a', ...field }]), { a: given }, 'fields', source)
}

describe('a pasted value is stored as it was meant', () => {
  test.each<[JsonObject, string, string]>([
    [{}, '  acme \n', 'acme'],
    [{}, 'ac\u200bme\ufeff', 'acme'],
    [{}, 'Beyoncé’s “shop”', 'Beyoncé’s “shop”'],
    [{}, 'می\u200cخواهم', 'می\u200cخواهم'],
    [{ type: 'password' }, ' s\u200be c \t', 's\u200be c'],
    [{ type: 'password' }, ONE_LINE_KEY, KEY],
    [{ type: 'password' }, 'a\\nb', 'a\\nb'],
    [{ type: 'textarea' }, ' a\r\nb\rc\u200b ', 'a\nb\nc'],
    [{ type: 'textarea' }, `"${ONE_LINE_KEY}\\n"`, KEY],
    [{ type: 'file', is_secret: false }, `\ufeff${KEY}\n`, KEY],
    [{ type: 'file', is_secret: false }, '{"private_key":"-----BEGIN\\n"}', '{"private_key":"-----BEGIN\\n"}'],
    [{ format: 'hostname_label', suffix: '.zendesk.com' }, 'https://acme.zendesk.com/agent', 'acme'],
    [{ format: 'hostname_label', suffix: '.zendesk.com' }, 'ACME.ZENDESK.COM', 'ACME'],
    [{ format: 'hostname_label', suffix: '.zendesk.com' }, '//me:pw@acme.zendesk.com:443/?a=b#c', 'acme'],
    [{ format: 'hostname_label', suffix: '.zendesk.com', prefix: 'https://' }, '“acme”', 'acme'],
    [{ format: 'hostname' }, '<https://login.acme.example/x>', 'login.acme.example'],
    [{ format: 'hostname' }, 'acme.example.', 'acme.example'],
    [{ format: 'email' }, '<mailto:a@b.example>', 'a@b.example'],
    [{ format: 'uuid' }, '{3F2504E0-4F89-41D3-9A0C-0305E82C3301}', '3F2504E0-4F89-41D3-9A0C-0305E82C3301'],
    [{ format: 'url' }, 'acme.example/x?y=1', 'https://acme.example/x?y=1'],
    [{ format: 'url' }, 'http://127.0.0.1:80', 'http://127.0.0.1:80'],
    [{ format: 'tel' }, 'tel:+49 (30) 12–34/56', '+4930123456'],
    [{ format: 'date' }, ' 2028-02-29', '2028-02-29'],
    [{ transform: 'lowercase', prefix: 'https://' }, 'HTTPS://Acme', 'acme'],
  ])('%j: %j is %j', (field, pasted, stored) => {
    const collected = collect(field, pasted)
    expect(collected.kind === 'collected' && { ...collected.secrets, ...collected.visible }).toEqual({ a: stored })
    expect(collect(field, stored)).toEqual(collected)
  })
})

describe('a value has the JSON type of its field', () => {
  test.each<[JsonObject, Json, Json | undefined]>([
    [{ type: 'checkbox' }, 'on', true],
    [{ type: 'checkbox' }, 'true', true],
    [{ type: 'checkbox' }, false, false],
    [{ type: 'checkbox' }, null, false],
    [{ type: 'checkbox', default: true }, null, true],
    [{ type: 'checkbox', default: true }, 'false', false],
    [{ type: 'number' }, '0042', 42],
    [{ type: 'number' }, '+1e3', new JsonNumber('1e3')],
    [{ type: 'number' }, ' 1.50 ', new JsonNumber('1.50')],
    [{ type: 'number' }, '12345678901234567890', new JsonNumber('12345678901234567890')],
    [{ type: 'number' }, 7, 7],
    [{ type: 'number', min: 1, max: 9 }, '9', 9],
    [{ type: 'number', default: 3 }, '', 3],
    [{ type: 'number' }, '', undefined],
    [{ type: 'multi_select', options: CHOICES }, ['us', 'eu', 'us'], ['us', 'eu']],
    [{ type: 'multi_select', options: CHOICES }, 'eu', ['eu']],
    [{ type: 'multi_select', options: CHOICES, default: ['eu'] }, [], ['eu']],
    [{ type: 'multi_select', options: CHOICES }, [''], undefined],
    [{ type: 'single_select', options: CHOICES }, 'us', 'us'],
    [{ type: 'single_select', options: [{ value: ' a\u200b' }] }, ' a\u200b', ' a\u200b'],
    [{ type: 'text' }, 12, '12'],
    [{ type: 'hidden', default: 'x' }, null, 'x'],
    [{ type: 'hidden', default: 'x' }, 'y', 'y'],
  ])('%j: %j is stored as %j', (field, given, stored) => {
    const visible = stored === undefined ? {} : { a: stored }
    expect(collect(field, given)).toEqual({ kind: 'collected', secrets: {}, visible })
  })
})

describe('a value that does not fit is rejected with its rule', () => {
  test.each<[JsonObject, Json, string]>([
    [{ required: true }, ' \u200b\n', 'required'],
    [{ type: 'checkbox', required: true }, 'off', 'required'],
    [{ type: 'checkbox' }, 'yes', 'type'],
    [{ type: 'checkbox' }, 'constructor', 'type'],
    [{ type: 'number' }, '1,5', 'type'],
    [{ type: 'number' }, 'NaN', 'type'],
    [{ type: 'number' }, true, 'type'],
    [{ type: 'number' }, '9'.repeat(301), 'type'],
    [{ type: 'number' }, ' '.repeat(1_000_000), 'type'],
    [{ type: 'number', min: 1 }, '0', 'number.min'],
    [{ type: 'number', max: 1 }, '1e400', 'number.max'],
    [{ type: 'multi_select', options: CHOICES }, ['eu', 'mars'], 'enum'],
    [{ type: 'multi_select', options: CHOICES }, ['eu', { a: 1 }], 'type'],
    [{ type: 'multi_select', options: CHOICES, required: true }, [], 'required'],
    [{ type: 'file' }, 'x'.repeat(16_385), 'string.max_len'],
    [{ type: 'file' }, 'x'.repeat(5_000_000), 'string.max_len'],
    [{ type: 'file' }, '***', 'secret_masked'],
    [{ type: 'textarea' }, 'a\u0000b', 'string.control'],
    [{ type: 'text' }, 'a\ud800', 'string.control'],
    [{ type: 'text' }, { a: 1 }, 'type'],
    [{ format: 'hostname' }, 'acme', 'string.hostname'],
    [{ format: 'hostname' }, `${'a.'.repeat(130)}example`, 'string.hostname'],
    [{ format: 'hostname_label', suffix: '.zendesk.com' }, 'https://acme.example/agent', 'string.hostname_label'],
    [{ format: 'tel' }, 'call me', 'string.tel'],
    [{ format: 'date' }, '2027-02-29', 'string.date'],
    [{ format: 'date' }, '29.02.2028', 'string.date'],
    [{ pattern: 'x' }, 'y', 'string.pattern'],
    [{ type: 'single_select', options: CHOICES, required: true }, 'mars', 'enum'],
  ])('%j: %j', (field, given, rule) => {
    const collected = collect(field, given)
    expect(collected.kind === 'invalid' && collected.violations.map((each) => each.rule)).toEqual([rule])
    expect(FIELD_RULES).toContain(rule)
  })

  test('a pattern has its own message', () => {
    const collected = collect({ pattern: '\\d+', pattern_message: 'must be the number in the address' }, 'x')
    expect(collected).toMatchObject({
      violations: [{ field: 'fields.a', description: 'must be the number in the address' }],
    })
  })
})

const PLANS = fieldList().parse([
  { name: 'plan', type: 'single_select', options: [{ value: 'cloud' }, { value: 'own' }] },
  { name: 'host', required: true, visible_when: { field: 'plan', equals: 'own' } },
  { name: 'ca', type: 'file', required: true, visible_when: { field: 'host', equals: ['acme', 'b'] } },
])

describe('a field that is not shown is neither required nor stored', () => {
  test.each<[string, JsonObject, JsonObject | string[]]>([
    ['no value decides', {}, {}],
    ['another value', { plan: 'cloud', host: 'acme', ca: KEY }, { plan: 'cloud' }],
    ['its value', { plan: 'own', host: 'c' }, { plan: 'own', host: 'c' }],
    ['required where it is shown', { plan: 'own', host: 'acme' }, ['fields.ca']],
    ['a value of a list', { plan: 'own', host: ' b ', ca: KEY }, { plan: 'own', host: 'b', ca: KEY }],
  ])('%s', (_what, given, expected) => {
    const collected = collectFields(PLANS, given, 'fields')
    if (Array.isArray(expected))
      expect(collected.kind === 'invalid' && collected.violations.map(({ field }) => field)).toEqual(expected)
    else expect(collected.kind === 'collected' && { ...collected.visible, ...collected.secrets }).toEqual(expected)
  })

  test.each<[JsonObject, Json, Json, boolean]>([
    [{ type: 'checkbox' }, true, 'on', true],
    [{ type: 'checkbox' }, true, null, false],
    [{ type: 'number' }, 1.5, '1.50', true],
    [{ type: 'multi_select', options: CHOICES }, 'us', ['eu', 'us'], true],
    [{ type: 'multi_select', options: CHOICES }, ['us'], ['eu'], false],
  ])('%j equal to %j, given %j: shown is %s', (field, equals, given, isShown) => {
    const fields = fieldList().parse([
      { name: 'a', ...field },
      { name: 'b', default: 'x', visible_when: { field: 'a', equals } },
    ])
    const collected = collectFields(fields, { a: given }, 'fields')
    expect(collected.kind === 'collected' && 'b' in collected.visible).toBe(isShown)
  })
})

describe('options that the third party knows are bounded', () => {
  const [select] = fieldList().parse([{ name: 'a', type: 'multi_select', options: CHOICES }])
  const { options: _, ...remote } = select ?? { name: 'a', type: 'multi_select' as const, required: false }
  const numbered = (count: number) => Array.from({ length: count }, (_item, index) => `C${index}`)

  test.each<[string, Json, string[]]>([
    ['an id that the definition does not list', ['C1'], []],
    ['as many as may be chosen', numbered(500), []],
    ['more than may be chosen', numbered(501), ['list.max_items']],
    ['an id of 513 characters', ['x'.repeat(513)], ['string.max_len']],
    ['an id with NUL', ['C1', 'a\u0000'], ['string.control']],
    ['an id with half of a surrogate pair', ['\udc00'], ['string.control']],
  ])('%s', (_what, given, rules) => {
    const collected = collectFields([remote], { a: given }, 'fields')
    expect(collected.kind === 'invalid' ? collected.violations.map(({ rule }) => rule) : []).toEqual(rules)
  })
})

test('a field that depends on one without a value is neither required nor stored', () => {
  const [a, b, c] = fieldList().parse(['a', 'b', 'c'].map((name) => ({ name, required: name !== 'a' })))
  const fields = [a, { ...b, dependsOn: ['a'] }, { ...c, dependsOn: ['b'] }] as Parameters<typeof collectFields>[0]
  expect(collectFields(fields, { b: 'x', c: 'y' }, 'fields')).toMatchObject({ visible: {} })
  expect(collectFields(fields, { a: 'x' }, 'fields')).toMatchObject({ violations: [{ field: 'fields.b' }] })
})

test('a supplied value wins, and a customer cannot set a hidden field', () => {
  const fields = fieldList().parse([
    { name: 'site', required: true },
    { name: 'region', type: 'hidden', default: 'eu' },
  ])
  const given = { site: 'mine', region: 'us' }
  const source = { supplied: { site: 'theirs' }, isFromCustomer: true }
  expect(collectFields(fields, given, 'fields', source)).toMatchObject({ visible: { site: 'theirs', region: 'eu' } })
  expect(collectFields(fields, given, 'fields')).toMatchObject({ visible: given })
})

test('names of members that every object has are no values', () => {
  const fields = fieldList().parse([{ name: 'toString' }, { name: 'valueOf' }])
  expect(collectFields(fields, {}, 'fields')).toEqual({ kind: 'collected', secrets: {}, visible: {} })
})

test.each([
  ['password', undefined, true],
  ['file', undefined, true],
  ['file', false, false],
  ['textarea', undefined, false],
  ['textarea', true, true],
  ['text', undefined, false],
] as const)('the value of a %s with is_secret %s is a secret: %s', (type, is_secret, isSecret) => {
  const [field] = fieldList().parse([{ name: 'a', type, is_secret }])
  expect(field && isSecretField(field)).toBe(isSecret)
  const collected = collect(is_secret === undefined ? { type } : { type, is_secret }, KEY)
  expect(collected).toMatchObject(
    isSecret ? { secrets: { a: KEY }, visible: {} } : { secrets: {}, visible: { a: KEY } },
  )
})

describe('keys that contradict each other are rejected', () => {
  test.each<[string, JsonObject, string]>([
    ['a multi_select without options', { type: 'multi_select' }, 'needs options'],
    ['bounds of a text', { min: 1 }, 'only a number has'],
    ['bounds that no number meets', { type: 'number', min: 2, max: 1 }, 'larger than its max'],
    ['extensions of a text', { accept: ['.pem'] }, 'only a file has'],
    ['an extension without a dot', { type: 'file', accept: ['pem'] }, 'must be a file name extension'],
    ['a secret text', { is_secret: true }, 'only a textarea or file has'],
    ['a message without a pattern', { pattern_message: 'x' }, 'without a pattern'],
    ['a pattern of a number', { type: 'number', pattern: '1' }, 'which a number has not'],
    ['a text as default of a number', { type: 'number', default: '1' }, 'is not a number'],
    ['a default that is no option', { type: 'single_select', options: CHOICES, default: 'x' }, 'none of its options'],
    ['one text as default of a multi_select', { type: 'multi_select', options: CHOICES, default: 'eu' }, 'a list of'],
    ['a default of a secret file', { type: 'file', default: 'x' }, 'is a secret'],
    ['a condition on itself', { visible_when: { field: 'a', equals: 'x' } }, 'not listed before'],
    ['a condition on a missing field', { visible_when: { field: 'b', equals: 'x' } }, 'not listed before'],
    ['a name that no object may have', { name: '__proto__' }, 'not possible'],
  ])('%s', (_what, field, problem) => {
    expect(fieldList().safeParse([{ name: 'a', ...field }]).error?.issues[0]?.message).toContain(problem)
  })

  test('a condition on a secret, which the page would have to know', () => {
    const fields = [
      { name: 'a', type: 'password' },
      { name: 'b', visible_when: { field: 'a', equals: 'x' } },
    ]
    expect(fieldList().safeParse(fields).error?.issues[0]?.message).toContain('is a secret')
  })
})

test('a form shows fields by their order, and says everything about them but values of secrets', () => {
  const fields = fieldList().parse(
    [
      { name: 'b', order: 2, label: 'B', required: true, visible_when: { field: 'a', equals: 'x' } },
      { name: 'c', order: 1, type: 'single_select', options: CHOICES, default: 'eu' },
      { name: 'a' },
      { name: 'key', type: 'password', default: 'secret' },
    ].toSorted((one) => (one.name === 'a' ? -1 : 0)),
  )
  const view = listFormFields(fields, { c: 'us' })
  expect(view.map(({ name }) => name)).toEqual(['a', 'key', 'c', 'b'])
  expect(view[1]).toMatchObject({ isSecret: true, initialValue: undefined })
  expect(view[2]).toMatchObject({
    isHidden: true,
    initialValue: 'eu',
    options: [
      { value: 'eu', label: 'Europe' },
      { value: 'us', label: 'us' },
    ],
  })
  expect(view[3]).toMatchObject({ label: 'B', isRequired: true, visibleWhen: { field: 'a', equals: ['x'] } })
})
