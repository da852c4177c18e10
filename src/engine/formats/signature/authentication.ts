import type { Json } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileTemplate, listPlaceholderPaths } from '../../expressions/template.ts'
import type { FormatChoice } from '../format.ts'
import { listMembers } from './combination.ts'
import { renderSetting } from './secret.ts'

/** Whether what a verification accepts is authentic. `none` accepts everything, and so does an `any_of` with it. */
export function authenticates(choice: FormatChoice): boolean {
  switch (choice.format) {
    case 'none':
      return false
    case 'any_of':
      return listMembers(choice).every(authenticates)
    case 'all_of':
      return listMembers(choice).some(authenticates)
    default:
      return true
  }
}

/** Whether an authentic request could pass now: every placeholder of the verification has a value, or it needs none. */
export function hasSecret(choice: FormatChoice, scope: TemplateScope): boolean {
  const members = listMembers(choice)
  switch (choice.format) {
    case 'any_of':
      return members.some((member) => hasSecret(member, scope))
    case 'all_of':
      return members.every((member) => hasSecret(member, scope))
    default:
      return listTexts(choice.config ?? null).every((text) => isResolved(text, scope))
  }
}

function isResolved(text: string, scope: TemplateScope): boolean {
  if (listPlaceholderPaths(text).length === 0) return true
  return renderSetting(compileTemplate(text), scope, 'the setting').kind === 'ok'
}

function listTexts(value: Json): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(listTexts) : []
}
