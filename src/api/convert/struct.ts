import type { JsonObject as WireObject } from '@bufbuild/protobuf'
import type { JsonObject } from '../../base/index.ts'

/** A free-form object as a message holds it; absent becomes `{}`, so that no client ever misses the key. */
export function structFrom(json: JsonObject | undefined): WireObject {
  // protobuf's JSON type is ours without `readonly`, and nothing here or there changes what it holds.
  return (json ?? {}) as WireObject
}
