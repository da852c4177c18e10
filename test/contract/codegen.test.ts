import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { file_buf_validate_validate } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { describe, expect, it } from 'vitest'
import { printValidateProto } from '../../src/codegen/print-validate-proto.ts'

const root = join(import.meta.dirname, '..', '..')
const VALIDATE = 'buf/validate/validate.proto'

describe('the vendored validation rules', () => {
  it('are the source that the installed validator was built from: compiled again, the descriptor is byte-identical', () => {
    const args = ['build', 'proto', '--exclude-source-info', '--as-file-descriptor-set', '-o', '-']
    const image = execFileSync(join(root, 'node_modules', '.bin', 'buf'), args, { cwd: root, maxBuffer: 1 << 26 })
    const compiled = fromBinary(FileDescriptorSetSchema, image).file.find((file) => file.name === VALIDATE)

    expect(compiled && toBinary(FileDescriptorProtoSchema, compiled)).toEqual(
      toBinary(FileDescriptorProtoSchema, file_buf_validate_validate.proto),
    )
  })

  it('are exactly what the printer prints', () => {
    expect(readFileSync(join(root, 'proto', VALIDATE), 'utf8')).toBe(printValidateProto())
  })
})
