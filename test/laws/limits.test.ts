import { type DescField, type DescMessage, getOption, ScalarType } from '@bufbuild/protobuf'
import { type FieldRules, field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { describe, expect, it } from 'vitest'
import { SERVICES } from '../support/operations.ts'

/** Types without a limit in the contract, and what bounds them. */
const BOUNDED_OTHERWISE: Readonly<Record<string, string>> = {
  'google.protobuf.Struct': 'a request has at most 4 MiB and 50 000 values',
  'google.protobuf.Value': 'a request has at most 4 MiB and 50 000 values',
}

/** One counted class of characters behind at most one more, as names have it. */
const BOUNDED_PATTERN = /^\^(?:\[[^\]]+\]){0,1}\[[^\]]+\]\{\d+,\d+\}\$$/

const REQUESTS = SERVICES.flatMap(({ methods }) => methods.map(({ input }) => input))

/** Every field of a message and of the messages within it, by its path. */
function* fieldsOf(desc: DescMessage, seen: ReadonlySet<DescMessage> = new Set()): Generator<DescField> {
  if (seen.has(desc) || desc.typeName.startsWith('google.protobuf.')) return
  for (const field of desc.fields) {
    yield field
    if (field.message !== undefined) yield* fieldsOf(field.message, new Set([...seen, desc]))
  }
}

const fields = new Map(REQUESTS.flatMap((desc) => [...fieldsOf(desc)]).map((field) => [field.toString(), field]))

function problemsOf(field: DescField): readonly string[] {
  const { type } = getOption(field, fieldRules)
  if (field.fieldKind === 'list') {
    const rules = type.case === 'repeated' ? type.value : undefined
    const isBounded = (rules?.maxItems ?? 0n) > 0n
    return [...(isBounded ? [] : ['no max_items']), ...itemProblems(field, field.scalar, rules?.items?.type)]
  }
  if (field.fieldKind === 'map') {
    const rules = type.case === 'map' ? type.value : undefined
    return [
      ...((rules?.maxPairs ?? 0n) > 0n ? [] : ['no max_pairs']),
      ...itemProblems(undefined, field.mapKey, rules?.keys?.type),
      ...itemProblems(field, field.scalar, rules?.values?.type),
    ]
  }
  return itemProblems(field, field.scalar, type)
}

function itemProblems(
  field: DescField | undefined,
  scalar: ScalarType | undefined,
  rules: FieldRules['type'] | undefined,
) {
  const typeName = field?.message?.typeName
  if (typeName === 'google.protobuf.ListValue') return ['no limit']
  if (typeName !== undefined || (scalar !== ScalarType.STRING && scalar !== ScalarType.BYTES)) return []
  return isBoundedText(rules) ? [] : ['no max_len']
}

function isBoundedText(rules: FieldRules['type'] | undefined): boolean {
  if (rules?.case === 'bytes') return rules.value.maxLen > 0n || rules.value.len > 0n
  if (rules?.case !== 'string') return false
  const { maxLen, maxBytes, len, lenBytes, in: choices, const: only, pattern, wellKnown } = rules.value
  const isChoice = choices.length > 0 || only !== '' || BOUNDED_PATTERN.test(pattern)
  return [maxLen, maxBytes, len, lenBytes].some((limit) => limit > 0n) || isChoice || wellKnown.case === 'uuid'
}

describe('a field of a request', () => {
  it.each([...fields.keys()])('has a limit: %s', (name) => {
    const field = fields.get(name)
    if (field === undefined) throw new Error(`no ${name}`)
    if (field.message !== undefined && field.message.typeName in BOUNDED_OTHERWISE && field.fieldKind === 'message')
      return
    expect(problemsOf(field)).toEqual([])
  })
})
