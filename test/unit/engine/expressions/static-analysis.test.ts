import { describe, expect, it, test } from 'vitest'
import { listVariablePaths } from '../../../../src/engine/expressions/input-analysis.ts'
import { findFilteredList } from '../../../../src/engine/expressions/list-filter.ts'

describe('the list that an expression filters is found', () => {
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

describe('the variables of an expression', () => {
  it.each([
    ['$steps.login.token', ['steps.login']],
    ['$steps.`a-b`[0].x', ['steps.a-b']],
    ['$steps["login"]', ['steps']],
    ['$previous', ['previous']],
    ['{"a": [$previous.id, "$steps.text"]}', ['previous.id']],
    ['a.$previous', ['previous']],
    ['items[id = $steps.one]', ['steps.one']],
    ['$steps.a ~> $sum', ['steps.a', 'sum']],
    ['$map(a, function($v) { $v.id })', ['v', 'v.id', 'map']],
    ['a.b', []],
    ['a +', []],
  ])('%s', (text, expected) => {
    const found = listVariablePaths(text).map(({ variable, step }) =>
      step === undefined ? variable : `${variable}.${step}`,
    )
    expect(found).toEqual(expected)
  })
})
