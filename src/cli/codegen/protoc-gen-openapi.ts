#!/usr/bin/env node
/**
 * A buf plugin that writes `gen/openapi.json`: the REST side of the contract as OpenAPI 3.1, derived from the
 * descriptors alone. What it says of paths, bodies, limits and texts is what the server transcodes, validates and the
 * `.proto` files explain, so it cannot drift. Runs with `strategy: all`, because one document describes all services.
 */
import { createEcmaScriptPlugin, runNodeJs } from '@bufbuild/protoplugin'
import { openApiDocument } from './openapi/document.ts'

const plugin = createEcmaScriptPlugin({
  name: 'protoc-gen-openapi',
  version: 'v1',
  generateTs(schema) {
    const document = openApiDocument(schema.files, schema.allFiles)
    schema.generateFile('openapi.json').print(JSON.stringify(document, undefined, 2))
  },
})

runNodeJs(plugin)
