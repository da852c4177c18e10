import type { DescField, DescMessage, JsonValue } from '@bufbuild/protobuf'

type JsonRecord = Record<string, JsonValue>
type Fix = (json: JsonValue) => JsonValue

const fixes = new Map<DescMessage, Fix | undefined>()

/**
 * Gives every timestamp in a message's JSON exactly three decimals (`…:00.000Z`); protobuf writes none, three, six or
 * nine. Digits beyond milliseconds are cut.
 *
 * The JSON, in the contract's spelling, is changed in place. Where the timestamps are is found out once per message type.
 */
export function padTimestamps(desc: DescMessage, json: JsonValue): void {
  fixFor(desc)?.(json)
}

function fixFor(desc: DescMessage): Fix | undefined {
  if (!fixes.has(desc)) fixes.set(desc, compile(desc))
  return fixes.get(desc)
}

function compile(desc: DescMessage): Fix | undefined {
  if (desc.typeName === 'google.protobuf.Timestamp') return padTimestamp
  if (desc.typeName.startsWith('google.protobuf.')) return undefined
  // A type that contains itself finds this entry while it is compiled, and its real one when it runs.
  fixes.set(desc, (json) => fixes.get(desc)?.(json) ?? json)
  const fields = desc.fields.flatMap((field) => {
    const fix = field.message === undefined ? undefined : fixFor(field.message)
    return fix === undefined ? [] : [{ name: field.name, fix: overItems(field, fix) }]
  })
  if (fields.length === 0) return undefined
  return (json) => {
    const record = json as JsonRecord
    for (const { name, fix } of fields) {
      const value = record[name]
      if (value !== undefined) record[name] = fix(value)
    }
    return record
  }
}

function overItems(field: DescField, fix: Fix): Fix {
  if (field.fieldKind === 'list') return (items) => (items as JsonValue[]).map(fix)
  if (field.fieldKind !== 'map') return fix
  return (entries) => Object.fromEntries(Object.entries(entries as JsonRecord).map(([key, item]) => [key, fix(item)]))
}

const SECONDS_LENGTH = '2026-01-31T08:00:00'.length

function padTimestamp(json: JsonValue): JsonValue {
  const text = String(json)
  const fraction = text.slice(SECONDS_LENGTH + 1, -1)
  return `${text.slice(0, SECONDS_LENGTH)}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}
