// The model of a program and its pages, of a fixture with what programs have. The compiler reads it twice in this file.
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { runTensorfx } from '../../src/cli/commands.ts'
import { loadCompiler } from '../../src/docs/compiler.ts'
import { headerOf, parseDoc } from '../../src/docs/docComment.ts'
import { lint } from '../../src/docs/lints.ts'
import type { ProgramSymbol } from '../../src/docs/model.ts'
import { found } from '../../src/docs/page/search.ts'
import type { Entry } from '../../src/docs/page/search.ts'
import { Lookup } from '../../src/docs/pages/lookup.ts'
import { checkLinks, filesOf, modelText, writePages } from '../../src/docs/pages/site.ts'
import { publicPart } from '../../src/docs/publicPart.ts'
import { globs, readProject } from '../../src/docs/project.ts'
import { readModel } from '../../src/docs/read/index.ts'
import type { ReadModel } from '../../src/docs/read/index.ts'
import { FILES, writeProject } from './fixture/project.ts'

const folders: string[] = []
const newFolder = (name: string): string => {
  const folder = mkdtempSync(join(tmpdir(), name))
  folders.push(folder)
  return folder
}
afterAll(() => {
  for (const folder of folders) removeFolder(folder)
})

let read: ReadModel
const folder = newFolder('tensorfx docs ')
beforeAll(() => {
  writeProject(folder)
  const ts = loadCompiler(folder)
  read = readModel(ts, readProject(ts, folder))
})
const symbol = (id: string): ProgramSymbol => {
  const found = read.model.symbols.find((one) => one.id === id)
  if (found === undefined) throw new Error(`there is no ${id} among ${read.model.symbols.map((one) => one.id).join(', ')}`)
  return found
}
const module = (path: string): ReadModel['model']['modules'][number] => {
  const found = read.model.modules.find((one) => one.path === path)
  if (found === undefined) throw new Error(`there is no ${path}`)
  return found
}
const calls = (from: string): string[] => read.model.calls.filter((call) => call.from === from).map(({ to, kind }) => `${kind} ${to}`)

describe('the model of a program', () => {
  it('has the sources, without builds, tests and generated files', () => {
    const expected = Object.keys(FILES).filter((name) => name.startsWith('src/') && name !== 'src/generated.ts')
    expect(read.model.modules.map(({ path }) => path)).toEqual(expected.toSorted())
  })

  it('lists overloads once, without their implementation, and joins their docs', () => {
    const { signatures, doc, line, endLine, kind } = symbol('src/area.ts#area')
    expect(signatures).toEqual(['function area(radius: number): number', 'function area(width: number, height: number): number'])
    expect(doc?.text).toBe('The area of a circle.\n\nThe area of a rectangle.')
    expect([kind, line, endLine]).toEqual(['function', 4, 9])
  })

  it('follows `export *`, renamed and default exports to the declaration, and says which entry exports it', () => {
    expect(module('src/index.ts').exports).toEqual([
      { name: 'Bad', symbol: 'src/shape.ts#Bad' },
      { name: 'Box', symbol: 'src/merged.ts#Box' },
      { name: 'ShapeError', symbol: 'src/shape.ts#ShapeError' },
      { name: 'Sized', symbol: 'src/shape.ts#Sized' },
      { name: 'Square', symbol: 'src/shape.ts#Square' },
      { name: 'areaOf', symbol: 'src/area.ts#area' },
      { name: 'unit', symbol: 'src/area.ts#default' },
    ])
    expect(symbol('src/area.ts#area').entries).toEqual(['shapes#areaOf'])
    expect(symbol('src/case.ts#foo').entries).toEqual(['shapes/extra#foo'])
    expect(module('src/extra.ts').entries).toEqual(['shapes/extra'])
    // `rules/index.js` was not built from `src/index.ts`, whatever its name.
    expect(module('src/index.ts').entries).toEqual(['shapes'])
  })

  it('tells public, internal and private names apart', () => {
    const visible = (id: string): string => symbol(id).visibility
    expect(
      ['src/shape.ts#Square.area', 'src/area.ts#each', 'src/area.ts#helper', 'src/shape.ts#Square.secret', 'src/shape.ts#Square.#size'].map(visible),
    ).toEqual(['public', 'internal', 'private', 'private', 'private'])
  })

  it('merges declarations of one name, and both halves of an accessor', () => {
    expect(symbol('src/merged.ts#Box')).toMatchObject({
      kind: 'interface',
      signatures: ['interface Box', 'namespace Box'],
      doc: { text: 'A box,\n\nand functions for boxes.' },
    })
    expect(symbol('src/merged.ts#Box.empty').signatures).toEqual(['function empty(): Box'])
    expect(symbol('src/shape.ts#Square.size')).toMatchObject({ kind: 'accessor', signatures: ['get size(): number', 'set size(value: number)'] })
    expect(symbol('src/merged.ts#Way').signatures).toEqual(['enum Way {\n    Up,\n    Down\n}'])
    // A value that is a type, too, is used as a value, and called as one.
    expect(symbol('src/merged.ts#INVALID')).toMatchObject({ kind: 'constant', doc: { text: 'What is not valid.' } })
    expect(symbol('src/merged.ts#open')).toMatchObject({ kind: 'function', isRunnable: true })
    expect(calls('src/merged.ts#opened')).toEqual(['call src/merged.ts#open'])
    expect(symbol('src/merged.ts#Pair').signatures).toEqual(['type Pair<T> = readonly [\n    T,\n    T\n];'])
  })

  it('reads CommonJS and JSDoc', () => {
    expect(module('src/legacy/lib.cjs').exports.map(({ name, symbol: id }) => [name, id])).toEqual([
      ['Counter', 'src/legacy/lib.cjs#Counter'],
      ['direct', 'src/legacy/lib.cjs#direct'],
      ['double', 'src/legacy/lib.cjs#double'],
    ])
    expect(symbol('src/legacy/lib.cjs#double').signatures).toEqual(['function double(n: number): number'])
    expect(symbol('src/legacy/lib.cjs#double').doc?.tags.map(({ name }) => name)).toEqual(['param', 'returns', 'throws'])
    expect(symbol('src/legacy/lib.cjs#Counter.next')).toMatchObject({ kind: 'method', doc: { text: 'One more.' }, isRunnable: true })
    expect(calls('src/legacy/lib.cjs#Counter.next')).toEqual(['call src/legacy/lib.cjs#double'])
    expect(calls('src/legacy/whole.cjs#quadruple')).toEqual(['call src/legacy/lib.cjs#double'])
    expect(module('src/legacy/whole.cjs').exports.map(({ symbol: id }) => id)).toContain('src/legacy/lib.cjs#double')
    expect(module('src/legacy/whole.cjs').imports).toEqual([{ from: 'src/legacy/lib.cjs', isPackage: false, names: ['double'], isType: false }])
    expect(module('src/legacy/lib.cjs').header).toBe('A table, in JavaScript.')
  })

  it('names the errors that functions throw: both sides of a condition, with codes and messages', () => {
    expect(symbol('src/shape.ts#Square.constructor').throws).toEqual([
      { error: 'ShapeError', symbol: 'src/shape.ts#ShapeError', code: null, message: 'a size of {size} is below 0', line: 35 },
    ])
    expect(symbol('src/area.ts#helper').throws.map(({ error, message }) => [error, message])).toEqual([
      ['RangeError', 'too large'],
      ['TypeError', '{one.size} is large'],
    ])
  })

  it('names the calls: by symbol, of constructors and accessors, of functions that are handed over, and where only a type is known', () => {
    expect(calls('src/shape.ts#Square.area')).toEqual(['call src/area.ts#area'])
    expect(calls('src/shape.ts#Square.grow')).toEqual(['call src/shape.ts#Square.#step', 'new src/shape.ts#Square.constructor'])
    expect(calls('src/shape.ts#Bad.constructor')).toEqual(['call src/shape.ts#Square.constructor'])
    expect(calls('src/shape.ts#Bad.grow')).toEqual(['call src/shape.ts#Square.grow'])
    expect(calls('src/shape.ts#Square.[Symbol.iterator]')).toEqual(['get src/shape.ts#Square.size'])
    expect(calls('src/area.ts#helper')).toContain('dynamic then: (one: Square) => number')
    expect(calls('src/area.ts#each')).toEqual(
      expect.arrayContaining(['call src/area.ts#helper', 'call src/area.ts#area', 'dynamic f: (one: Square) => number']),
    )
    expect(symbol('src/shape.ts#Square').heritage).toEqual(['src/shape.ts#Sized'])
  })

  it('names the tests that use a symbol', () => {
    expect(symbol('src/shape.ts#Square').tests).toEqual([
      { file: 'test/shape.test.ts', line: 6, title: 'a square > has an area' },
      { file: 'test/shape.test.ts', line: 9, title: 'a square > has a size %d | <b>' },
    ])
    expect(symbol('src/area.ts#area').tests).toHaveLength(1)
  })

  it('hashes tokens: line ends and comments make no difference', () => {
    expect(symbol('src/windows.ts#crlf').hash).toBe(symbol('src/unix.ts#crlf').hash)
    expect(module('src/windows.ts')).toMatchObject({ header: 'With a byte order mark.', hash: module('src/unix.ts').hash })
    expect(symbol('src/windows.ts#crlf').doc?.text).toBe('Lines end\nin CRLF.')
  })

  it('is the same, byte for byte, from another folder and another order of files', () => {
    const other = newFolder('elsewhere-')
    writeProject(other, FILES, (names) => names.toReversed())
    const ts = loadCompiler(other)
    const project = readProject(ts, other)
    const again = readModel(ts, { ...project, sources: project.sources.toReversed(), tests: project.tests.toReversed() })
    expect(modelText(again.model)).toBe(modelText(read.model))
    expect(modelText(again.model)).not.toContain(other)
  })
})

describe('the pages', () => {
  const options = { formats: ['html', 'md', 'json'] as const }

  it('have no dead links and no anchor twice, in HTML as it was written', () => {
    const lookup = new Lookup(read.model, null)
    const pages = writePages(lookup, read.sources, options)
    expect(checkLinks(pages.map(({ links }) => links))).toEqual([])
    const files = filesOf(lookup, pages, options)
    const html = new Map([...files].filter(([name]) => name.endsWith('.html')))
    const ids = new Map([...html].map(([name, text]) => [name, [...text.matchAll(/ id="([^"]*)"/g)].map(([, id = '']) => id)]))
    let followed = 0
    for (const [name, text] of html) {
      expect(new Set(ids.get(name)).size, name).toBe(ids.get(name)?.length)
      for (const [, href = ''] of text.matchAll(/href="([^"]*)"/g)) {
        const { pathname, hash } = new URL(href.replaceAll('&amp;', '&'), `file:///${name.split('/').map(encodeURIComponent).join('/')}`)
        const target = decodeURIComponent(pathname.slice(1))
        expect(files.has(target), `${name} leads to ${href}`).toBe(true)
        if (hash !== '')
          expect(
            ids.get(target)?.map((id) => id.replaceAll('&amp;', '&')),
            `${name} leads to ${href}`,
          ).toContain(decodeURIComponent(hash.slice(1)))
        followed++
      }
    }
    expect(followed).toBeGreaterThan(300)
    // Names that differ in case alone have pages of different names, and anchors that keep theirs.
    expect(new Set([...files.keys()].map((name) => name.toLowerCase())).size).toBe(files.size)
    expect(files.get('modules/src/Case.ts.html')).toMatch(/id="fooBar"[^]*id="foobar"/)
  })

  it('have every export of every entry, with a link to its source, and the search finds it', () => {
    const lookup = new Lookup(read.model, null)
    const files = filesOf(lookup, writePages(lookup, read.sources, options), options)
    const window: { searchIndex: readonly Entry[] } = { searchIndex: [] }
    new Function('window', files.get('search.js') ?? '')(window)
    const exported = read.model.modules.flatMap(({ path, entries, exports }) =>
      entries.length === 0 ? [] : exports.map((one) => ({ path, ...one })),
    )
    expect([...new Set(exported.map(({ name }) => name))].toSorted().join(' ')).toBe(
      'Bad Bare Box Foo ShapeError Sized Square areaOf check checked foo shapes unit verify',
    )
    for (const { path, name, symbol: id } of exported) {
      // A namespace of a module has the page of that module.
      const target = id === null ? { page: lookup.pageOf(path) } : lookup.targetOf(id)
      const page = target !== null && 'page' in target ? target.page : ''
      const html = files.get(`${page}.html`) ?? ''
      expect(html, name).toContain(name)
      if (id === null) continue
      const [, href = '', line = ''] = new RegExp(` id="${lookup.anchorOf(id)}".* href="([^"]*)#L(\\d+)"`).exec(html) ?? []
      const source = decodeURIComponent(new URL(href, `file:///${page}.html`).pathname.slice(1))
      const declared = new RegExp(` id="L${line}">(.*)`).exec(files.get(source) ?? '')?.[1]?.replaceAll(/<[^>]*>/g, '')
      expect(declared, `${name} in ${source}`).toContain(symbol(id).name)
      const first = found(window.searchIndex, name, 5).map(([, , address]) => decodeURIComponent(address))
      expect(first, name).toContain(`${page}.html#${lookup.anchorOf(id)}`)
    }
  })

  it('say for each module what it is, what is in it, who uses it, its tests, errors and related modules', () => {
    const lookup = new Lookup(read.model, null)
    const written = filesOf(lookup, writePages(lookup, read.sources, options), options)
    const page = written.get('modules/src/shape.ts.md') ?? ''
    for (const part of [
      'A shape.',
      '## <a id=".glance"></a>At a glance',
      'class Square implements Sized',
      'a size of &#123;size&#125; is below 0',
      'has an area',
      'test/shape.test.ts:6',
      'Imported by',
      'Extended or implemented by',
      'new Square(3)',
    ])
      expect(page).toContain(part)
    expect(page).toContain('[`Square.area`](#Square-area)')
    const links = written.get('modules/src/links.ts.md') ?? ''
    for (const part of [
      'Has [`other`](#Linked-other)',
      'As [`one`](#Linked-one), and no `one`',
      '[the first](#Linked-one) and [`other`](#Linked-other)',
    ])
      expect(links).toContain(part)
  })

  it('find public names without docs, modules without a header, tags that lead nowhere, and errors that docs do not name', () => {
    const findings = lint(new Lookup(read.model, null), []).map(({ rule, file, line, text }) => `${rule} ${file}:${line} ${text}`)
    expect(findings).toEqual([
      'dead-link src/links.ts:1 links nowhere, which has no place in the documentation',
      'dead-link src/links.ts:5 links Other.one, which has no place in the documentation',
      'dead-link src/links.ts:13 links fourth, which has no place in the documentation',
      expect.stringMatching(/^purpose src\/Case\.ts:0 /),
      expect.stringMatching(/^purpose src\/legacy\/whole\.cjs:0 /),
      expect.stringMatching(/^purpose src\/merged\.ts:0 /),
      'public-undocumented src/strict.ts:2 Bare is public and has no doc comment',
      'throws-undocumented src/strict.ts:4 check throws RangeError, which its doc does not say',
    ])
  })

  it('may be of public names alone', () => {
    const part = new Lookup(publicPart(read.model), null)
    const pages = writePages(part, read.sources, options)
    expect(checkLinks(pages.map(({ links }) => links))).toEqual([])
    expect(part.model.symbols.map(({ id }) => id)).toEqual(read.model.symbols.filter(({ visibility }) => visibility === 'public').map(({ id }) => id))
    const texts = [...filesOf(part, pages, options)].filter(([name]) => !name.startsWith('source/')).map(([, text]) => text)
    const mentions = (name: string): boolean => texts.some((text) => new RegExp(`\\b${name}\\b`).test(text))
    expect(['Square', 'areaOf', 'verify'].filter((name) => !mentions(name))).toEqual([])
    expect(['helper', 'secret', 'crlf', 'Counter', 'quadruple'].filter(mentions)).toEqual([])
  })

  it('are the same when they are made from a model.json without a compiler', async () => {
    const [first, second] = [newFolder('with a compiler '), newFolder('from a model ')]
    const run = async (...words: string[]) => runTensorfx(['docs', ...words, '--format', 'html,md,json'], { print: () => {}, note: () => {} })
    expect((await run(folder, '--out', first)).code).toBe(0)
    const model = join(first, 'model.json')
    expect((await run(folder, '--out', second, '--from', model)).text).toContain(`\n${read.model.modules.length} modules, `)
    const all = (at: string): string[] =>
      readdirSync(at, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(?:html|md|js|json|txt)$/.test(name) && !name.startsWith('.'))
    expect(all(second).toSorted()).toEqual(all(first).toSorted())
    for (const name of all(first)) expect(readFileSync(join(second, name), 'utf8'), name).toBe(readFileSync(join(first, name), 'utf8'))
    // Where the sources are elsewhere, their address is enough, and without it they are asked for.
    expect(await run(second, '--out', newFolder('no sources '), '--from', model)).toMatchObject({
      code: 2,
      text: expect.stringContaining('--source-url'),
    })
    const linked = await run(second, '--out', newFolder('linked '), '--from', model, '--source-url', 'https://example.com/{path}#L{line}')
    expect(linked.code).toBe(0)
    expect((await run(folder, '--from', join(folder, 'package.json'))).text).toContain('is not a model.json')
    expect((await run(folder, '--from', join(folder, 'nothing.json'))).text).toContain('there is no file')
  })

  it('are written once, checked, and left alone where nothing has changed', async () => {
    const out = join(folder, 'docs/site')
    const run = async (...words: string[]) => runTensorfx(['docs', folder, ...words], { print: () => {}, note: () => {} })
    expect((await run()).code).toBe(0)
    expect(readFileSync(join(out, 'modules/src/hostile.ts.html'), 'utf8')).not.toContain('<img')
    expect((await run()).text).toMatch(/^Nothing has changed/)
    writeFileSync(join(out, 'names.html'), 'stale')
    const { text, code } = await run('--check')
    expect([code, text]).toEqual([1, expect.stringContaining('out of date: names.html')])
    expect(readFileSync(join(out, 'names.html'), 'utf8')).toBe('stale')
    expect(readdirSync(out)).toContain('model.json')
  })
})

describe('the parts', () => {
  it('headers are comments at the head of files, not those of declarations, licences or tools', () => {
    expect(headerOf('// What it is.\n// More.\nimport x from "x"')).toBe('What it is.\nMore.')
    expect(headerOf('/** Doc. */\nexport function f() {}')).toBeNull()
    expect(headerOf('/**\n * @fileoverview All.\n */\nexport const x = 1')).toBe('All.')
    expect(headerOf('#!/usr/bin/env node\n/* Copyright (c) 2020 */\n// eslint-disable x\n\n/* Real. */\nfoo()')).toBe('Real.')
    expect(headerOf('const x = 1 // no')).toBeNull()
  })

  it('doc comments keep tags in code', () => {
    expect(parseDoc('/**\n * Text.\n * ```\n * @decorator\n * ```\n * @param x the x\n *   and more\n */')).toEqual({
      text: 'Text.\n```\n@decorator\n```',
      tags: [{ name: 'param', text: 'x the x\n  and more' }],
    })
  })

  it.each([
    ['src/**', 'src/a/b.ts', true],
    ['src/**/*.ts', 'src/b.ts', true],
    ['src/*.ts', 'src/a/b.ts', false],
    ['{lib,src}/*.js, *.mjs', 'x.mjs', true],
    ['a.ts', 'axts', false],
  ])('glob %s, file %s: %s', (glob, file, expected) => {
    expect(globs(glob).test(file)).toBe(expected)
  })
})
