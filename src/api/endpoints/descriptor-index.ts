import { type DescExtension, type DescFile, toBinary } from '@bufbuild/protobuf'
import { nestedTypes } from '@bufbuild/protobuf/reflect'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'

/** Everything that can be looked up in a set of protobuf files and the files they import. */
export interface DescriptorIndex {
  /** The file of this name. */
  fileNamed(name: string): DescFile | undefined
  /** The file that declares a message, enum, extension, service, method, field or enum value. */
  fileDeclaring(symbol: string): DescFile | undefined
  extensionsOf(typeName: string): readonly DescExtension[]
}

/** Indexes the files and, transitively, what they import. */
export function indexDescriptors(roots: readonly DescFile[]): DescriptorIndex {
  const files = new Map(withImports(roots).map((file) => [`${file.name}.proto`, file]))
  const symbols = new Map<string, DescFile>()
  const extensions: DescExtension[] = []
  for (const file of files.values())
    for (const type of nestedTypes(file)) {
      if (type.kind === 'extension') extensions.push(type)
      for (const symbol of symbolsOf(type)) symbols.set(symbol, file)
    }
  return {
    fileNamed: (name) => files.get(name),
    fileDeclaring: (symbol) => symbols.get(symbol),
    extensionsOf: (typeName) => extensions.filter(({ extendee }) => extendee.typeName === typeName),
  }
}

/** The files and everything they import, each once, imports first. */
export function withImports(roots: readonly DescFile[]): readonly DescFile[] {
  const seen = new Map<string, DescFile>()
  const visit = (file: DescFile) => {
    if (seen.has(file.name)) return
    for (const imported of file.dependencies) visit(imported)
    seen.set(file.name, file)
  }
  for (const root of roots) visit(root)
  return [...seen.values()]
}

/** The file as reflection sends it. */
export function fileBytes({ proto }: DescFile): Uint8Array {
  return toBinary(FileDescriptorProtoSchema, proto)
}

type NestedType = ReturnType<typeof nestedTypes> extends Iterable<infer Type> ? Type : never

function symbolsOf(type: NestedType): readonly string[] {
  switch (type.kind) {
    case 'message':
      return [type.typeName, ...type.members.map(({ name }) => `${type.typeName}.${name}`)]
    case 'enum':
      return [type.typeName, ...type.values.map(({ name }) => `${type.typeName}.${name}`)]
    case 'service':
      return [type.typeName, ...type.methods.map(({ name }) => `${type.typeName}.${name}`)]
    case 'extension':
      return [type.typeName]
  }
}
