import type { DescField, DescMessage, JsonValue } from '@bufbuild/protobuf'

type JsonRecord = Record<string, JsonValue>
type TimestampFormatter = (json: JsonValue) => JsonValue

const timestampFormatters = new Map<DescMessage, TimestampFormatter | undefined>()

/**
 * Gives every timestamp in a message's JSON exactly three decimals (`…:00.000Z`); protobuf writes none, three, six or
 * nine. Digits beyond milliseconds are cut.
 *
 * The JSON, in the contract's spelling, is changed in place. Where the timestamps are is found out once per message type.
 */
export function formatTimestamps(desc: DescMessage, json: JsonValue): void {
  timestampFormatterFor(desc)?.(json)
}

function timestampFormatterFor(desc: DescMessage): TimestampFormatter | undefined {
  if (!timestampFormatters.has(desc)) timestampFormatters.set(desc, compileTimestampFormatter(desc))
  return timestampFormatters.get(desc)
}

function compileTimestampFormatter(desc: DescMessage): TimestampFormatter | undefined {
  if (desc.typeName === 'google.protobuf.Timestamp') return formatTimestamp
  if (desc.typeName.startsWith('google.protobuf.')) return undefined
  // A type that contains itself finds this entry while it is compiled, and its real one when it runs.
  timestampFormatters.set(desc, (json) => timestampFormatters.get(desc)?.(json) ?? json)
  const fields = desc.fields.flatMap((field) => {
    const fix = field.message === undefined ? undefined : timestampFormatterFor(field.message)
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

function overItems(field: DescField, fix: TimestampFormatter): TimestampFormatter {
  if (field.fieldKind === 'list') return (items) => (items as JsonValue[]).map(fix)
  if (field.fieldKind !== 'map') return fix
  return (entries) => Object.fromEntries(Object.entries(entries as JsonRecord).map(([key, item]) => [key, fix(item)]))
}

const SECONDS_LENGTH = '2026-01-31T08:00:00'.length

function formatTimestamp(json: JsonValue): JsonValue {
  const text = String(json)
  const fraction = text.slice(SECONDS_LENGTH + 1, -1)
  return `${text.slice(0, SECONDS_LENGTH)}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}
