/**
 * Prints `buf/validate/validate.proto` from the descriptor that `@bufbuild/protovalidate` embeds, because no npm
 * package carries the source. Compiled again, the printed text gives the same descriptor byte for byte
 * (`test/contract/codegen.test.ts`); comments of the original are not part of a descriptor and are lost.
 *
 *     node src/codegen/print-validate-proto.ts > proto/buf/validate/validate.proto
 *
 * Prints what that one file uses: proto2, no groups, maps, services, nested types or default values.
 */

import { createRegistry, type DescFile, type DescMessage, isFieldSet, type MessageShape } from '@bufbuild/protobuf'
import { toText } from '@bufbuild/protobuf/txtpb'
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  FileOptionsSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt'
import { file_buf_validate_validate } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'

const PREAMBLE = `// Copyright 2023-2026 Buf Technologies, Inc.
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//      http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// Printed from the descriptor in @bufbuild/protovalidate by src/codegen/print-validate-proto.ts; not edited by hand.
`

const EXTENSION_NUMBER_END = 536_870_912

const LABELS = { [Label.OPTIONAL]: 'optional', [Label.REQUIRED]: 'required', [Label.REPEATED]: 'repeated' } as const

/** The `.proto` source of a file, with a licence preamble. Uses only what the descriptor holds, so equal input gives equal text. */
export function printProtoFile(file: DescFile, preamble: string): string {
  const registry = createRegistry(file)
  const { proto } = file
  const scope = `.${proto.package}.`

  /** Options as `name = value` entries; text format already orders and escapes them, only its separators differ. */
  function options<D extends DescMessage>(schema: D, message: MessageShape<D> | undefined): string[] {
    if (!message) return []
    const entries = toText(schema, message, { registry })
      .trimEnd()
      .split(/\n(?=[^\s}])/)
    return entries
      .filter((entry) => entry !== '')
      .map((entry) => entry.replace(/^\[(\S+)\]: /, '($1) = ').replace(/^(\w+): /, '$1 = '))
  }

  function typeOf(field: FieldDescriptorProto): string {
    if (field.typeName === '') return (Type[field.type] ?? '').toLowerCase()
    return field.typeName.startsWith(scope) ? field.typeName.slice(scope.length) : field.typeName.slice(1)
  }

  function printField(field: FieldDescriptorProto, label: string): string {
    const list = options(FieldOptionsSchema, field.options)
    const suffix = list.length === 0 ? '' : ` [${list.join(',\n')}]`
    return `${label}${typeOf(field)} ${field.name} = ${field.number}${suffix};`
  }

  const labelled = (field: FieldDescriptorProto) => printField(field, `${LABELS[field.label]} `)

  /** Fields in declaration order; the members of a oneof stand together where its first member stood. */
  function printFields(message: DescriptorProto): string[] {
    const printed = new Set<number>()
    return message.field.flatMap((field) => {
      const index = field.oneofIndex
      if (!inOneof(field)) return [labelled(field)]
      if (printed.has(index)) return []
      printed.add(index)
      const members = message.field.filter((other) => inOneof(other) && other.oneofIndex === index)
      const name = message.oneofDecl[index]?.name ?? ''
      return [
        block(
          `oneof ${name}`,
          members.map((member) => printField(member, '')),
        ),
      ]
    })
  }

  function printMessage(message: DescriptorProto): string {
    return block(`message ${message.name}`, [
      ...printFields(message),
      ...message.extensionRange.map((range) => `extensions ${span(range.start, range.end)};`),
      ...message.reservedRange.map((range) => `reserved ${span(range.start, range.end)};`),
      ...message.reservedName.map((name) => `reserved "${name}";`),
    ])
  }

  const extendees = [...new Set(proto.extension.map((extension) => extension.extendee))]
  const extensions = extendees.map((extendee) => {
    const members = proto.extension.filter((extension) => extension.extendee === extendee)
    return block(`extend ${extendee.slice(1)}`, members.map(labelled))
  })

  return [
    preamble,
    `syntax = "proto2";\n\npackage ${proto.package};\n`,
    ...proto.dependency.map((path) => `import "${path}";`),
    '',
    ...options(FileOptionsSchema, proto.options).map((option) => `option ${option};`),
    ...extensions.map((text) => `\n${text}`),
    ...proto.enumType.map((type) => `\n${printEnum(type)}`),
    ...proto.messageType.map((type) => `\n${printMessage(type)}`),
    '',
  ].join('\n')
}

function inOneof(field: FieldDescriptorProto): boolean {
  return isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex)
}

function printEnum(type: EnumDescriptorProto): string {
  return block(`enum ${type.name}`, [
    ...type.value.map((value) => `${value.name} = ${value.number};`),
    // An enum's reserved range names its last number, a message's the number after it.
    ...type.reservedRange.map((range) => `reserved ${span(range.start, range.end + 1)};`),
    ...type.reservedName.map((name) => `reserved "${name}";`),
  ])
}

function block(head: string, lines: readonly string[]): string {
  const body = lines.map((line) => `  ${line.replaceAll('\n', '\n  ')}`).join('\n')
  return `${head} {\n${body}\n}`
}

/** A range of field numbers whose end is exclusive. */
function span(start: number, end: number): string {
  if (end === EXTENSION_NUMBER_END) return `${start} to max`
  return end === start + 1 ? `${start}` : `${start} to ${end - 1}`
}

/** The text of `proto/buf/validate/validate.proto`. */
export function printValidateProto(): string {
  return printProtoFile(file_buf_validate_validate, PREAMBLE)
}

if (import.meta.main) process.stdout.write(printValidateProto())
