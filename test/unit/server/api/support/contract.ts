import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createFileRegistry,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromBinary,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'

const TEST_PROTOS = join(import.meta.dirname, '../contract')
const PROJECT = join(import.meta.dirname, '../../../../..')

/** The test contract, compiled with the vendored protos it imports: descriptors only, nothing is generated. */
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, compile()))

/** `widget.v1.WidgetService`. */
export const WidgetService: DescService = known(registry.getService('widget.v1.WidgetService'))

/** `unserved.v1.UnservedService`: forms of google.api.http that the server rejects. */
export const UnservedService: DescService = known(registry.getService('unserved.v1.UnservedService'))

/** A message of the test contract by its short name. */
export function message(name: string): DescMessage {
  return known(registry.getMessage(`widget.v1.${name}`))
}

/** A unary method of the test contract. */
export function unary(name: string): DescMethodUnary {
  const method = WidgetService.methods.find((candidate) => candidate.name === name)
  if (method?.methodKind !== 'unary') throw new Error(`no unary method ${name}`)
  return method as DescMethodUnary
}

export function serverStream(name: string): DescMethodServerStreaming {
  const method = WidgetService.methods.find((candidate) => candidate.name === name)
  if (method?.methodKind !== 'server_streaming') throw new Error(`no server stream ${name}`)
  return method as DescMethodServerStreaming
}

function compile(): Buffer {
  const workspace = mkdtempSync(join(tmpdir(), 'widget-'))
  try {
    cpSync(join(PROJECT, 'proto/google'), join(workspace, 'google'), { recursive: true })
    cpSync(join(PROJECT, 'proto/buf'), join(workspace, 'buf'), { recursive: true })
    cpSync(join(PROJECT, 'proto/patchbay/v1/access.proto'), join(workspace, 'patchbay/v1/access.proto'))
    cpSync(TEST_PROTOS, workspace, { recursive: true })
    writeFileSync(join(workspace, 'buf.yaml'), 'version: v2\n')
    const out = join(workspace, 'out.binpb')
    execFileSync(join(PROJECT, 'node_modules/.bin/buf'), ['build', workspace, '--as-file-descriptor-set', '-o', out])
    return readFileSync(out)
  } finally {
    rmSync(workspace, { recursive: true, force: true })
  }
}

function known<Desc>(desc: Desc | undefined): Desc {
  if (desc === undefined) throw new Error('not in the test contract')
  return desc
}
