import { describe, expect, it } from 'vitest'
import { isShortened, toolName, toolTitle } from '../../../../src/tools/servers/tool-name.ts'

const named = (method: string, resource: string, prefix?: string) =>
  toolName({ method, resource, prefix, isSingular: method !== 'list' })

describe('the name of a tool', () => {
  it.each([
    ['list', 'contacts', undefined, 'list_contacts'],
    ['get', 'contacts', undefined, 'get_contact'],
    ['create', 'companies', undefined, 'create_company'],
    ['get', 'addresses', undefined, 'get_address'],
    ['get', 'statuses', undefined, 'get_status'],
    ['get', 'analyses', undefined, 'get_analysis'],
    ['get', 'line_items', undefined, 'get_line_item'],
    ['get', 'boxes', undefined, 'get_box'],
    ['get', 'movies', undefined, 'get_movie'],
    ['get', 'sms', undefined, 'get_sms'],
    ['get', 'news', undefined, 'get_news'],
    ['get', 'user-groups', undefined, 'get_user_group'],
    ['list', 'contactLists', undefined, 'list_contact_lists'],
    ['list', 'contacts', 'hubspot', 'hubspot_list_contacts'],
    ['headcount', '', undefined, 'headcount'],
  ])('of %s %s with prefix %s is %s', (method, resource, prefix, name) => {
    expect(named(method, resource, prefix)).toBe(name)
  })

  it('is cut to 48 characters, and differs where the cut part does', () => {
    const long = 'opportunities_of_the_customers_in_all_the_regions'
    const [one, other] = [named('list', `${long}_one`), named('list', `${long}_two`)]
    expect([one.length, other.length]).toEqual([48, 48])
    expect(one).not.toBe(other)
    expect(named('list', `${long}_one`)).toBe(one)
    expect(isShortened({ method: 'list', resource: long, isSingular: false })).toBe(true)
  })

  it('is a title as words', () => {
    expect(toolTitle({ method: 'get', resource: 'line_items', prefix: 'xero', isSingular: true })).toBe('Get line item')
  })
})
