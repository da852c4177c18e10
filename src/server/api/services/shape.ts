import type { DescMessage, Message, MessageInitShape, MessageShape, JsonObject as WireObject } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema, timestampFromDate, type Value, ValueSchema } from '@bufbuild/protobuf/wkt'
import type { Json, JsonObject } from '../../../foundation/json/index.ts'
import { valueFrom } from '../messages/struct.ts'
import { toEtag } from './values.convert.ts'

/** The local names of a message's fields; a `oneof` is one field. */
type LocalName<Shape> = Exclude<keyof Shape, '$typeName' | '$unknown'>

/** The fields of a message that a record does not have under their local names, or has with another type. */
type Unfit<Source, Shape> = {
  [Name in LocalName<Shape>]-?: Name extends keyof Source
    ? Fits<NonNullable<Source[Name]>, NonNullable<Shape[Name]>> extends true
      ? never
      : Name
    : Name extends 'etag'
      ? Source extends { readonly version: number }
        ? never
        : Name
      : Name
}[LocalName<Shape>]

/** Whether the value of a record becomes that of a field without an exception. */
type Fits<Given, Field> = [Field] extends [Timestamp]
  ? Is<Given, Date>
  : [Field] extends [Value]
    ? Is<Given, Json>
    : [Field] extends [Message]
      ? Is<Unfit<Given, Field>, never>
      : [Field] extends [readonly (infer Item)[]]
        ? [Given] extends [readonly (infer GivenItem)[]]
          ? Fits<GivenItem, Item>
          : false
        : [WireObject] extends [Field]
          ? Is<Given, JsonObject>
          : Is<Given, Field>

type Is<Given, Wanted> = [Given] extends [Wanted] ? true : false

type Exception<Desc extends DescMessage, Source, Name> = (
  record: Source,
) => Name extends keyof MessageInitShape<Desc> ? MessageInitShape<Desc>[Name] | null : never

type Exceptions<Desc extends DescMessage, Source> = {
  readonly [Name in Unfit<Source, MessageShape<Desc>>]: Exception<Desc, Source, Name>
} & {
  readonly [Name in LocalName<MessageShape<Desc>>]?: Exception<Desc, Source, Name>
}

/** Exceptions may be left out where every field fits. */
type ExceptionsArgument<Desc extends DescMessage, Source> = [Unfit<Source, MessageShape<Desc>>] extends [never]
  ? [exceptions?: Exceptions<Desc, Source>]
  : [exceptions: Exceptions<Desc, Source>]

/**
 * The one shape of a resource: makes messages of records by the fields of the message. A field is the value that the record has
 * under its local name: dates become timestamps, null and undefined are unset, `etag` is that of `version`; records within it
 * become messages in the same way. What the message has no field for is left out.
 *
 * `from` takes the exceptions, a function of the record for each. A field that the record does not have, or with a value that does
 * not fit it, must be one: it does not compile otherwise.
 *
 * Use: `const teamToProto = shapeOf(TeamSchema).from<TeamRecord>()`.
 */
export function shapeOf<Desc extends DescMessage>(desc: Desc) {
  return {
    from<Source extends object>(
      ...[exceptions]: ExceptionsArgument<Desc, Source>
    ): (record: Source) => MessageInitShape<Desc> {
      const convert = compileShape(desc, exceptions as UntypedExceptions)
      return (record) => convert(record) as MessageInitShape<Desc>
    },
  }
}

type Members = Readonly<Record<string, unknown>>
type UntypedExceptions = Readonly<Record<string, (record: object) => unknown>> | undefined
type Convert = (value: unknown) => unknown

function compileShape(desc: DescMessage, exceptions: UntypedExceptions = {}): (record: object) => object {
  const fields = desc.members.map((member) => {
    const { localName: name } = member
    const exception = exceptions[name]
    if (exception !== undefined) return { name, read: exception }
    const convert = member.kind === 'field' && member.message !== undefined ? conversionTo(member.message) : undefined
    const read = name === 'etag' ? readEtag : (record: object) => (record as Members)[name]
    if (convert === undefined) return { name, read }
    const isList = member.kind === 'field' && member.fieldKind === 'list'
    const each: Convert = isList ? (items) => (items as readonly unknown[]).map(convert) : convert
    return { name, read: (record: object) => mapGiven(read(record), each) }
  })
  const empty = Object.fromEntries(fields.map(({ name }) => [name, undefined]))
  return (record) => {
    // A copy has all fields in their order: adding them one by one takes half as long again.
    const init: Record<string, unknown> = { ...empty }
    for (const { name, read } of fields) init[name] = read(record) ?? undefined
    return init
  }
}

function mapGiven(value: unknown, convert: Convert): unknown {
  return value === undefined || value === null ? undefined : convert(value)
}

function readEtag(record: object): unknown {
  const { etag, version } = record as { readonly etag?: string; readonly version?: number }
  return etag ?? (version === undefined ? undefined : toEtag(version))
}

const conversions = new Map<DescMessage, Convert>()

/** The conversion to a field's message; undefined for a `Struct`, which messages hold as JSON. */
function conversionTo(desc: DescMessage): Convert | undefined {
  if (desc.typeName === TimestampSchema.typeName) return (date) => timestampFromDate(date as Date)
  if (desc.typeName === ValueSchema.typeName) return (json) => valueFrom(json as Json)
  if (desc.typeName.startsWith('google.protobuf.')) return undefined
  return (record) => {
    // Compiled when it is first used: a type may have fields of its own type.
    const convert = conversions.get(desc) ?? (compileShape(desc) as Convert)
    conversions.set(desc, convert)
    return convert(record)
  }
}
