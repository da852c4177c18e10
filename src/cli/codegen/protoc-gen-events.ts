#!/usr/bin/env node
/**
 * A buf plugin that writes what receivers of events read, derived from the messages with the option `event_types`:
 * `gen/events.json`, the JSON Schema of every event, and `gen/asyncapi.json`, the AsyncAPI document of deliveries; and what makes
 * the payloads: `gen/payload-fields.ts`. Runs with `strategy: all`, because one document describes all events.
 */
import { createEcmaScriptPlugin, runNodeJs } from '@bufbuild/protoplugin'
import { asyncApiDocument } from './events/asyncapi.ts'
import { readEventContract } from './events/event-contract.ts'
import { eventsSchema } from './events/json-schema.ts'
import { payloadFieldsModule } from './events/payload-fields.ts'

const plugin = createEcmaScriptPlugin({
  name: 'protoc-gen-events',
  version: 'v1',
  generateTs(schema) {
    const documents = {
      'events.json': eventsSchema(readEventContract(schema.allFiles, '#/$defs')),
      'asyncapi.json': asyncApiDocument(readEventContract(schema.allFiles, '#/components/schemas')),
    }
    for (const [name, document] of Object.entries(documents))
      schema.generateFile(name).print(JSON.stringify(document, undefined, 2))
    schema.generateFile('payload-fields.ts').print(payloadFieldsModule(schema.allFiles))
  },
})

runNodeJs(plugin)
