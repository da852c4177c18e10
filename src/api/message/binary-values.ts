import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'

/**
 * Tells whether a message in protobuf encoding has more fields, in itself and in the messages within, than that. Stops at the
 * first one too many: what reads it afterwards takes microseconds for each.
 *
 * @throws Error when the bytes are no message
 */
export function hasMoreFields(desc: DescMessage, bytes: Uint8Array, fieldsMax: number): boolean {
  let left = fieldsMax
  const count = (inner: DescMessage | undefined, mapValue: DescMessage | undefined, part: Uint8Array): boolean => {
    const reader = new BinaryReader(part)
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag()
      left -= 1
      if (left < 0) return true
      const field = inner?.fields.find((each) => each.number === number)
      const message = field === undefined ? valueOfEntry(number, mapValue) : field.message
      const isEntry = field?.fieldKind === 'map'
      if ((message === undefined && !isEntry) || wireType !== WireType.LengthDelimited) reader.skip(wireType, number)
      else if (
        isEntry ? count(undefined, mapValueOf(field), reader.bytes()) : count(message, undefined, reader.bytes())
      )
        return true
    }
    return false
  }
  return count(desc, undefined, bytes)
}

/** An entry of a map is a message whose second field is the value. */
function valueOfEntry(number: number, mapValue: DescMessage | undefined): DescMessage | undefined {
  return number === 2 ? mapValue : undefined
}

function mapValueOf(field: DescField & { readonly fieldKind: 'map' }): DescMessage | undefined {
  return field.mapKind === 'message' ? field.message : undefined
}
