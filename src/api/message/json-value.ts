import { fromJson, toJson } from '@bufbuild/protobuf'
import { type Value, ValueSchema } from '@bufbuild/protobuf/wkt'
import { type Json, toDoubles } from '../../base/index.ts'

/**
 * A `google.protobuf.Value` that keeps the JSON it stands for. JSON protocols write that JSON; the message proper, whose numbers
 * are doubles, is made only where binary protobuf or a rule asks for it.
 */
export class JsonValue implements Value {
  readonly $typeName = 'google.protobuf.Value'
  readonly json: Json
  #kind: Value['kind'] | undefined

  constructor(json: Json) {
    this.json = json
  }

  get kind(): Value['kind'] {
    // protobuf's JSON type is ours without `readonly`, and nothing changes what it holds.
    this.#kind ??= fromJson(ValueSchema, toDoubles(this.json) as never).kind
    return this.#kind
  }
}

/** The JSON that a message holds. Numbers of a message from binary protobuf were found to be finite. */
export function jsonOf(value: Value): Json {
  return value instanceof JsonValue ? value.json : toJson(ValueSchema, value)
}
