// Tokens of a function's source: literals, templates, and whether a slash or a brace starts an operand. Expected values by ECMAScript's grammar.
import { describe, expect, test } from 'vitest'
import { decodeEscapes, isMember, tokenize } from '../../src/fx/trace/source/tokens.ts'
import type { Token } from '../../src/fx/trace/source/tokens.ts'

const tokens = (source: string): readonly Token[] => [...tokenize(source)]
const texts = (source: string): readonly string[] => tokens(source).map(({ text }) => text)
const types = (source: string): readonly string[] => tokens(source).map(({ type }) => type)
const opened = (source: string): readonly (string | null)[] => tokens(source).flatMap(({ opens }) => (opens === null ? [] : [opens]))
/** Whether the slash at the end of `before` starts a regular expression. */
const startsRegex = (before: string): boolean => tokens(`${before} /a/g`).at(-1)?.type === 'regex'

describe('literals', () => {
  test('numbers', () => {
    for (const number of [
      '0',
      '7',
      '12',
      '1_000',
      '1.',
      '1.5',
      '.5',
      '.5_0',
      '1e3',
      '1E+3',
      '1.5e-10',
      '.5e2',
      '0xfF_0',
      '0b1_01',
      '0o17',
      '12n',
      '0xFFn',
    ]) {
      expect(tokens(`${number};`).map(({ type, text }) => [type, text])).toEqual([
        ['number', number],
        ['punctuator', ';'],
      ])
    }
    expect(texts('1..a')).toEqual(['1.', '.', 'a'])
    expect(texts('a.5')).toEqual(['a', '.5'])
  })

  test('strings end at their own quote, and backslashes hide it', () => {
    for (const string of [`''`, `'ab c'`, `"it's"`, `'say "a"'`, String.raw`'a\'b'`, String.raw`"a\\"`, `'a\\\nb'`, `'a\\\r\nb'`]) {
      expect(tokens(`${string}+1`).map(({ type, text }) => [type, text])).toEqual([
        ['string', string],
        ['punctuator', '+'],
        ['number', '1'],
      ])
    }
    expect(texts(`'a\nb'`)).toEqual([])
  })

  test('names, with escapes and letters of all scripts', () => {
    expect(tokens('a $b _c d1 größe #own').map(({ type, text }) => [type, text])).toEqual([
      ['name', 'a'],
      ['name', '$b'],
      ['name', '_c'],
      ['name', 'd1'],
      ['name', 'größe'],
      ['private', '#own'],
    ])
    expect(texts(String.raw`\u0061b \u{63}d`)).toEqual(['ab', 'cd'])
  })

  test('templates are split at their substitutions, which may nest', () => {
    expect(tokens('`plain text`').map(({ type, text }) => [type, text])).toEqual([['template', '`plain text`']])
    expect(texts('`a ${b} c`;')).toEqual(['`a ', '${', 'b', '}', ' c`', ';'])
    expect(texts('`${a}${b}`')).toEqual(['`', '${', 'a', '}', '', '${', 'b', '}', '`'])
    expect(texts('`a${`b${c}d`}e`')).toEqual(['`a', '${', '`b', '${', 'c', '}', 'd`', '}', 'e`'])
    expect(texts('`${{ a: 1 }.a}`')).toEqual(['`', '${', '{', 'a', ':', '1', '}', '.', 'a', '}', '`'])
  })

  test('in templates, dollars and escapes stand for themselves', () => {
    for (const template of [
      '`$`',
      '`$a $$ b`',
      '`cost: 5$`',
      String.raw`\`a\`b\``.slice(1, -2) + '`',
      String.raw`${'`'}\${a}${'`'}`,
      '`a{b}c`',
      '`ab\\`cd$ef`',
    ]) {
      expect(texts(`${template},x`)).toEqual([template, ',', 'x'])
    }
  })

  test('comments and white space are left out', () => {
    expect(texts('a // b\n/* c\n * d */ e /**/ f')).toEqual(['a', 'e', 'f'])
  })

  test('punctuators are as long as they can be', () => {
    const all =
      '... => ?. ++ -- == === != !== >>> >>>= >> >>= << <<= ** **= && &&= || ||= ?? ??= + += - -= * *= % %= & &= | |= ^ ^= < <= > >= ! ~ ? , ; : . @'
    expect(texts(all.replaceAll(' ', ' \n '))).toEqual(all.split(' '))
    expect(texts('a?.5:b')).toEqual(['a', '?', '.5', ':', 'b'])
    expect(texts('x=>y')).toEqual(['x', '=>', 'y'])
  })

  test('what is not JavaScript ends the tokens', () => {
    expect(texts('a \\ b')).toEqual(['a'])
    expect(texts('`open ${a')).toEqual(['`open ', '${', 'a'])
    expect(texts('`never closed')).toEqual([])
  })
})

describe('a slash', () => {
  test('starts a regular expression where an operand is expected', () => {
    for (const before of [
      '',
      'a =',
      '(',
      '[',
      ',',
      'return',
      'typeof',
      'case',
      'in',
      '!',
      'x ? ',
      '{',
      '{}',
      ';',
      '=>',
      'if (a)',
      'while (a)',
      'for (a of',
      '&&',
      '...',
    ]) {
      expect([before, startsRegex(before)]).toEqual([before, true])
    }
  })

  test('divides after an operand', () => {
    for (const before of ['a', '1', `'s'`, '`t`', '(a)', '[a]', 'f(a)', 'x = {}', 'a++', 'a--', 'a.return', 'a?.typeof', 'this', 'of', 'x.if (a)']) {
      expect([before, startsRegex(before)]).toEqual([before, false])
    }
  })

  test('a regular expression may have slashes in classes and after backslashes, and flags', () => {
    for (const regex of ['/a/', '/[/]/', String.raw`/\//gi`, String.raw`/[\]/]+/u`, '/a|b/y']) {
      expect(tokens(`${regex}.test`).map(({ type, text }) => [type, text])).toEqual([
        ['regex', regex],
        ['punctuator', '.'],
        ['name', 'test'],
      ])
    }
    expect(types('a / b / c')).toEqual(['name', 'punctuator', 'name', 'punctuator', 'name'])
  })
})

describe('a bracket says what it encloses', () => {
  test('braces: blocks after heads, arrows and statements, else objects', () => {
    expect(opened('if (a) {}')).toEqual(['group', 'block'])
    expect(opened('x = {}')).toEqual(['object'])
    expect(opened('f({})')).toEqual(['group', 'object'])
    expect(opened('() => {}')).toEqual(['group', 'block'])
    expect(opened('return {}')).toEqual(['object'])
    expect(opened('else {}')).toEqual(['block'])
    expect(opened('do {}')).toEqual(['block'])
    expect(opened('; {} {}')).toEqual(['block', 'block'])
    expect(opened('class A {}')).toEqual(['block'])
    expect(opened('[a, {}]')).toEqual(['group', 'object'])
    expect(opened('`${a}`')).toEqual(['template'])
  })

  test('after a colon: an object as a value, a block after a label', () => {
    expect(opened('x = { a: {} }')).toEqual(['object', 'object'])
    expect(opened('a ? b : {}')).toEqual(['object'])
    expect(opened('label: {}')).toEqual(['block'])
    expect(opened('{ a ? b : c; label: {} }')).toEqual(['block', 'block'])
    expect(opened('x = a ? b ? c : {} : {}')).toEqual(['object', 'object'])
  })
})

test('isMember: after a dot, also an optional one', () => {
  const [, dot] = tokens('a.b')
  const [, optional] = tokens('a?.b')
  const [name] = tokens('a')
  expect([dot, optional, name, null, undefined].map((token) => isMember(token))).toEqual([true, true, false, false, false])
})

test('decodeEscapes replaces every escape of JavaScript', () => {
  expect(decodeEscapes(String.raw`\n\r\t\b\v\f`)).toBe('\n\r\t\b\v\f')
  expect(decodeEscapes(String.raw`\x41\u0042\u{43}\u{1F600}`)).toBe('ABC😀')
  expect(decodeEscapes(String.raw`\0\101\7\77\377`)).toBe('\0A\u0007?\u00ff')
  expect(decodeEscapes(String.raw`\'\"\\\a\$`)).toBe(`'"\\a$`)
  expect(decodeEscapes('a\\\nb\\\r\nc\\\u2028d\\\u2029e')).toBe('abcde')
  expect(decodeEscapes('plain')).toBe('plain')
})
