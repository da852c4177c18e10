import { createSealer } from '../../../src/foundation/base/index.ts'
import { yieldToEventLoop } from '../../../src/foundation/fair/index.ts'
import { isJsonObject, type JsonObject, parseJson, parseJsonInSlices } from '../../../src/foundation/json/index.ts'
import { decodeToolCursor, encodeToolCursor } from '../../../src/tools/mcp/tool-cursor.ts'
import { checkArguments, readArguments, simplifySchema } from '../../../src/tools/servers/index.ts'
import { KIB, MIB, never, numbered, type Reader, repeated, withError } from './reader.ts'

const SEALER = createSealer([Buffer.alloc(32, 7)])

/** Arguments that a definition with a deep schema describes. */
const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    a: { type: 'integer', minimum: 0 },
    list: { type: 'array', items: { type: 'object', properties: { b: { enum: ['x', 'y'] } }, required: ['b'] } },
    ...Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`some_name_${at}`, { type: 'string' }])),
  },
  required: ['a'],
  additionalProperties: false,
}

function objectOf(input: string): JsonObject {
  const value = parseJson(input)
  return isJsonObject(value) ? value : {}
}

/** What clients of tool servers send, and schemas of definitions that become their tools. */
export const TOOL_READERS: readonly Reader[] = [
  {
    name: 'arguments of a tool',
    covers: [
      'tools/servers/check-arguments.ts#checkArguments',
      'tools/servers/check-arguments.ts#readArguments',
      'foundation/json/json-schema.ts#checkJsonSchema',
    ],
    lengthMax: MIB,
    read: async (input) => {
      const given = await parseJsonInSlices(input)
      await yieldToEventLoop()
      return checkArguments(SCHEMA, readArguments(SCHEMA, isJsonObject(given) ? given : {}))
    },
    rejects: withError,
    seeds: ['{"a":1,"list":[{"b":"x"}]}', '{"a":-1,"list":[{"b":"z"},{}],"other":1}'],
    attacks: {
      'many unknown names': numbered((at) => `${at === 0 ? '' : ','}"sme_nam_${at}":1`, '{', '}'),
      'many wrong items': repeated('{},', '{"list":[', '{}]}'),
      'deep lists': (length) => `{"a":${'['.repeat(length / 2)}${']'.repeat(length / 2)}}`,
    },
  },
  {
    name: 'schema of a tool',
    covers: [],
    lengthMax: 256 * KIB,
    read: (input) => simplifySchema(objectOf(input)),
    rejects: withError,
    seeds: ['{"$defs":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"]}'],
    attacks: {
      'references that double': numbered(
        (at) => `"d${at}":{"oneOf":[{"$ref":"#/$defs/d${at + 1}"},{"$ref":"#/$defs/d${at + 1}"}]},`,
        '{"$defs":{',
        '"z":{}},"properties":{"x":{"$ref":"#/$defs/d0"}}}',
      ),
      'wide definitions that name each other': (length) => {
        const each = repeated('{"$ref":"#/$defs/a"},', '', '{}')(length / 2)
        return `{"$defs":{"a":{"oneOf":[${each}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`
      },
      'long descriptions': repeated('x ', '{"description":"', '"}'),
    },
  },
  {
    name: 'cursor of a list of tools',
    covers: ['tools/mcp/tool-cursor.ts#decodeToolCursor'],
    lengthMax: MIB,
    read: (input) => decodeToolCursor({ tools: [], sealer: SEALER, holder: {} }, input),
    rejects: never,
    seeds: [encodeToolCursor({ tools: [], sealer: SEALER, holder: {} }, 100), ''],
    attacks: { long: repeated('A') },
  },
]
