// Documents a program whose names, comments, messages and titles are made of what breaks pages, and reads all of it back in the browser: the same text, no element, address or script that
// is not ours, and a search that finds it. The texts are drawn anew each day.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as fc from 'fast-check'
import { documentProject } from '../../dist/docs/index.js'

/** What pages, scripts, addresses, Markdown and tables give a meaning to. Separators of lines and marks that reverse text are written as escapes. */
const PIECES = [
  ...[
    '</script>',
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '<b>',
    '</code></pre>',
    '<!--',
    '-->',
    ']]>',
    '<svg onload=alert(1)>',
  ],
  ...['&amp;', '&#60;', '&', '"', "'", '`', '```', '<', '>', '|', '\\', '{{x}}', '${x}', '{@link Odd}', '*x*', '_y_', '# h', '- i'],
  ...[
    '[z](javascript:alert(1))',
    '![z](http://127.0.0.1:9/z.png)',
    'https://example.com/"onx=1',
    '\u2028',
    '\u2029',
    '\u202E',
    '\u200B',
    '\u{1F600}',
    'жук',
    ' ',
    'a',
    'b',
  ],
]
const text = fc.array(fc.constantFrom(...PIECES), { minLength: 2, maxLength: 9 }).map((pieces) => `t${pieces.join('')}t`)

/** The elements of our pages. */
const OURS = new Set(
  'html head meta title link body header a nav span input button div main p h1 h2 h3 h4 code pre i ul ol li table thead tbody tr th td details summary footer script strong em blockquote'.split(
    ' ',
  ),
)

/** A program around one text. */
function programOf(hostile, i) {
  const comment = hostile.replaceAll('*/', '* /').replaceAll('@', '(at)')
  const name = hostile.replaceAll(/[/\\#]/g, '').slice(0, 40)
  const file = `src/odd${i} ${name}.ts`
  const literal = JSON.stringify(hostile)
  const source = `/* ${comment} */\n\n/** ${comment} */\nexport class Odd${i} extends Error {\n  /** ${comment} */\n  ${literal} = ${literal}\n}\n/** Throws Error: ${comment} */\nexport function odd${i}(value = ${literal}): never {\n  throw new Error(${literal} + value)\n}\n`
  const from = JSON.stringify(`../${file}`)
  return { hostile, file, source, test: `import { it } from 'vitest'\nimport { odd${i} } from ${from}\nit(${literal}, () => odd${i}())\n` }
}

/** What a page shows, as the browser has parsed it. */
const shown = (page) =>
  page.evaluate(() => ({
    text: document.body.textContent,
    heading: document.querySelector('h1')?.textContent,
    elements: [...new Set([...document.querySelectorAll('*')].map((one) => one.localName))],
    handlers: [...document.querySelectorAll('*')].flatMap((one) =>
      [...one.attributes].filter(({ name }) => name.startsWith('on')).map(({ name }) => name),
    ),
    addresses: [...document.querySelectorAll('[href], [src]')].map(
      (one) => new URL(one.getAttribute('href') ?? one.getAttribute('src'), location.href).protocol,
    ),
    scripts: document.scripts.length,
    lines: [...document.querySelectorAll('pre.source .line')].map((one) => one.textContent.slice(one.querySelector('i').textContent.length)),
  }))

/** Returns the number of failures. */
export async function checkDocsPages(browser, pictures) {
  const failed = []
  const check = (what, ok) => {
    if (ok) return
    failed.push(what)
    console.log(`FAILED docs: ${what}`)
  }
  const seed = Number(process.env.TENSORFX_ROTATION ?? Math.floor(Date.now() / 86_400_000))
  const programs = [PIECES.slice(0, 18).join(''), PIECES.slice(18).join(''), ...fc.sample(text, { seed, numRuns: 8 })].map(programOf)
  const root = mkdtempSync(join(tmpdir(), 'tensorfx hostile '))
  const out = join(root, 'site')
  try {
    const write = (name, content) => {
      mkdirSync(dirname(join(root, name)), { recursive: true })
      writeFileSync(join(root, name), content)
    }
    write('package.json', JSON.stringify({ name: 'hostile', description: programs[0].hostile }))
    for (const [i, { file, source, test }] of programs.entries()) {
      write(file, source)
      write(`test/odd${i}.test.ts`, test)
    }
    const { model, findings } = await documentProject(root, { out, isCheck: false, formats: ['html'], sourceUrl: null })
    check(
      `no link is dead, but ${JSON.stringify(findings.filter(({ rule }) => rule === 'dead-link'))}`,
      !findings.some(({ level }) => level === 'error'),
    )
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } })
    page.on('pageerror', (error) => check(`an error: ${error.message}`, false))
    page.on('dialog', (dialog) => check(`a dialog: ${dialog.message()}`, false) ?? dialog.dismiss())
    page.on('request', (request) => request.url().startsWith('file:') || check(`a request to ${request.url()}`, false))
    const open = async (path) => {
      await page.goto(pathToFileURL(join(out, path)).href)
      const found = await shown(page)
      const strange = found.elements.filter((name) => !OURS.has(name))
      check(`${path} has elements of its own: ${strange.join(', ')}`, strange.length === 0)
      check(`${path} has handlers: ${found.handlers.join(', ')}`, found.handlers.length === 0)
      check(
        `${path} leads to ${[...new Set(found.addresses)].join(', ')}`,
        found.addresses.every((protocol) => /^(?:file|https?):$/.test(protocol)),
      )
      check(`${path} has ${found.scripts} scripts`, found.scripts === 2)
      return found
    }
    for (const [i, { hostile, file, source }] of programs.entries()) {
      const module = await open(`modules/${file}.html`)
      check(`the heading of ${file} is ${module.heading}`, module.heading === file)
      for (const [what, wanted] of [
        ['the message of its error', `${hostile}{value}`],
        ['the title of its test', hostile],
      ])
        check(`${file} shows ${what}`, module.text.includes(wanted))
      const lines = (await open(`source/${file}.html`)).lines.map((line) => line.replace(/\n$/, ''))
      check(`the source of ${file} is read back`, lines.join('\n') === source.trimEnd())
      await page.fill('#search', `odd${i}`)
      const [first] = await page.locator('#results a').allTextContents()
      check(`the search finds odd${i}, not ${first}`, first?.toLowerCase().startsWith(`odd${i}`) === true)
    }
    const start = await open('index.html')
    check('the first page has the description', start.text.includes(programs[0].hostile))
    for (const path of ['names', 'kinds', 'errors', 'modules/src/index']) await open(`${path}.html`)
    await page.goto(pathToFileURL(join(out, `modules/${programs[0].file}.html`)).href)
    mkdirSync(pictures, { recursive: true })
    await page.screenshot({ path: join(pictures, 'docs-hostile-phone.png') })
    check('and does not scroll sideways on a phone', await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
    await page.close()
    console.log(`${failed.length === 0 ? 'ok    ' : 'FAILED'} docs: ${programs.length} hostile texts are read back (${model?.symbols.length} names)`)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
  return failed.length
}
