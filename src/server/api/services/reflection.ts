import { type DescExtension, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf'
import { nestedTypes } from '@bufbuild/protobuf/reflect'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { ServerReflection } from '../../../../gen/grpc/reflection/v1/reflection_pb.ts'
import { ServerReflection as ServerReflectionAlpha } from '../../../../gen/grpc/reflection/v1alpha/reflection_pb.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'

/** gRPC's NOT_FOUND, which reflection puts into its answers instead of ending the stream. */
const NOT_FOUND = 5

/** A reflection request, the same in both versions of the protocol. */
interface ReflectionQuery {
  readonly host: string
  readonly messageRequest:
    | {
        readonly case: 'fileByFilename' | 'fileContainingSymbol' | 'allExtensionNumbersOfType' | 'listServices'
        readonly value: string
      }
    | {
        readonly case: 'fileContainingExtension'
        readonly value: { readonly containingType: string; readonly extensionNumber: number }
      }
    | { readonly case: undefined }
}

/**
 * `grpc.reflection.v1` and `v1alpha`, which differ in name only: a client needs nothing but the address to call the API.
 *
 * @param services in the answer to `list_services`
 * @param details files whose types occur in responses although no service names them, such as error details
 */
export function reflectionServices(
  services: readonly DescService[],
  details: readonly DescFile[],
): readonly ServiceDefinition[] {
  const all = [...services, ServerReflection, ServerReflectionAlpha]
  const index = indexDescriptors([...all.map(({ file }) => file), ...details])
  const names = all.map(({ typeName }) => ({ name: typeName })).sort((a, b) => a.name.localeCompare(b.name))

  async function* answers<Asked extends ReflectionQuery>(questions: AsyncIterable<Asked>) {
    for await (const question of questions)
      yield {
        validHost: question.host,
        originalRequest: question,
        messageResponse: answer(index, names, question.messageRequest),
      }
  }
  return [
    defineService(ServerReflection, { serverReflectionInfo: answers }),
    defineService(ServerReflectionAlpha, { serverReflectionInfo: answers }),
  ]
}

function answer(index: DescriptorIndex, names: { name: string }[], asked: ReflectionQuery['messageRequest']) {
  switch (asked.case) {
    case 'listServices':
      return { case: 'listServicesResponse' as const, value: { service: names } }
    case 'fileByFilename':
      return files(index.fileNamed(asked.value), asked.value)
    case 'fileContainingSymbol':
      return files(index.fileDeclaring(asked.value), asked.value)
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = asked.value
      const extension = index.extensionsOf(containingType).find(({ number }) => number === extensionNumber)
      return files(extension?.file, `extension ${extensionNumber} of ${containingType}`)
    }
    case 'allExtensionNumbersOfType': {
      const extensionNumber = index.extensionsOf(asked.value).map(({ number }) => number)
      const value = { baseTypeName: asked.value, extensionNumber }
      if (index.fileDeclaring(asked.value) === undefined) return missing(asked.value)
      return { case: 'allExtensionNumbersResponse' as const, value }
    }
    case undefined:
      return missing('an empty question')
  }
}

/** A file with all its imports, so that a client needs one request. */
function files(file: DescFile | undefined, wanted: string) {
  if (file === undefined) return missing(wanted)
  const fileDescriptorProto = withImports([file]).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto))
  return { case: 'fileDescriptorResponse' as const, value: { fileDescriptorProto } }
}

function missing(wanted: string) {
  return {
    case: 'errorResponse' as const,
    value: { errorCode: NOT_FOUND, errorMessage: `${wanted} was not found` },
  }
}

/** Look-up of descriptors in a set of protobuf files and their imports. */
interface DescriptorIndex {
  /** The file of this name. */
  fileNamed(name: string): DescFile | undefined
  /** The file that declares a message, enum, extension, service, method, field or enum value. */
  fileDeclaring(symbol: string): DescFile | undefined
  extensionsOf(typeName: string): readonly DescExtension[]
}

/** Indexes the files and, transitively, what they import. */
function indexDescriptors(roots: readonly DescFile[]): DescriptorIndex {
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
function withImports(roots: readonly DescFile[]): readonly DescFile[] {
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
