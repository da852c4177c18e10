import { describe, expect, test } from 'vitest'
import { findFilteredList } from '../../src/expression/index.ts'

describe('the list that an expression filters is told', () => {
  test.each([
    ['$.results[active]', '$.`results`'],
    ['$.results[active].{"id": uid}', '$.`results`'],
    ['$.groups.items[active]', '$.`groups`.`items`'],
    ['$.a.b[c].d[e]', '$.`a`.`b`'],
    ['$.*[active]', '$.*'],
    ['$.body[0].items[kind = "a"][0]', '$.`body`[0].`items`'],
    ['$.results^(at)[active]', '$.`results`'],
    ['($.results)[active]', '$.`results`'],
    ['$filter($.results, function($r) { $r.active })', '$.`results`'],
    ['$filter($.results, function($r) { $r.active }).{"id": uid}', '$.`results`'],
    ['$.results ~> $filter(function($r) { $r.active })', '$.`results`'],
    ['$map($.results[active], function($r) { $r.id })', '$.`results`'],
  ])('%s filters %s', (text, source) => {
    expect(findFilteredList(text)).toEqual({ kind: 'filtered', source })
  })

  test.each(['($x := $.results; $x[active])', '$.ok ? $.items[active] : []', '$append($.a[b], $.c[d])', '$[active]'])(
    '%s filters, and it cannot be told what',
    (text) => {
      expect(findFilteredList(text)).toEqual({ kind: 'filtered', source: undefined })
    },
  )

  test.each([
    '$.results',
    '$.body[0]',
    '$.results[]',
    '$.results[-1]',
    '$.results.{"id": uid}',
    '$map($.a, $string)',
    '$.(',
  ])('%s filters nothing', (text) => {
    expect(findFilteredList(text)).toEqual({ kind: 'unfiltered' })
  })
})
