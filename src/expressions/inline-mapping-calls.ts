import { bailOut, type CompiledNode } from './inline-frame.ts'
import type { CompileScope } from './inline-scope.ts'
import type { AstNode } from './parse.ts'

export function isMappingFunction(_name: string): boolean {
  return false
}

export function compileMappingCall(_scope: CompileScope, _name: string, _args: readonly AstNode[]): CompiledNode {
  return bailOut()
}
