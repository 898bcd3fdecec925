// Drives the page of a run: each planted situation is found within two clicks; stages, memory, kernels and the comparison of two runs can be seen; a page can save its own report.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { Driver, SCREENS } from './driver.mjs'
import { plantedLines } from './situations.mjs'

const MOST_ELEMENTS = 1_500
const MOST_BYTES = 2_000_000
/** Milliseconds of script until the page is seen. */
const FIRST_VIEW = 1_000
/** The kinds of findings that are not called like the situation. */
const KINDS = { 'recompile by shape': 'recompile', 'recompile by dtype': 'recompile', attribute: 'recompile', 'failing backend': 'failure' }

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = (words, env = {}) => execFileSync(process.execPath, words, { cwd: root, encoding: 'utf8', env: { ...process.env, ...env } })

/** Returns the number of failures. Leaves the pages and their pictures in `folder`. */
export async function checkReportPages(browser, folder, { inAllThemes = true, day = 0 } = {}) {
  mkdirSync(folder, { recursive: true })
  const failed = []
  const check = (what, ok, figure = '') => {
    console.log(`${ok ? 'ok    ' : 'FAILED'} page of a run: ${what}${figure === '' ? '' : ` (${figure})`}`)
    if (!ok) failed.push(what)
  }
  const open = (name, html, options) => Driver.open(browser, `${folder}/${name}.html`, html, options, (what) => check(`${name}: ${what}`, false))
  const scratch = mkdtempSync(join(tmpdir(), 'tensorfx-pages-'))
  try {
    const dir = join(scratch, 'trace')
    run(['scripts/pages/tracedRun.mjs', join(scratch, 'dumps')], { TENSORFX_TRACE: dir })
    const { runs } = JSON.parse(run(['dist/cli/main.js', 'report', dir, '--json']))
    const { totals } = runs[0]
    check('calls that went as before are counted', totals.calls > 30 && totals.hits >= 10, `${totals.calls} calls, ${totals.hits} hits`)
    check(
      'the training has two breaks, and its recompile',
      runs[0].findings.filter(({ kind, file }) => kind === 'break' && file.endsWith('tracedRun.mjs')).length === 2,
    )
    const html = readFileSync(join(dir, 'report.html'), 'utf8')
    check('the page is at most 2 MB', html.length <= MOST_BYTES, `${(html.length / 1e6).toFixed(2)} MB`)
    const themes = ['light', 'dark'].flatMap((colorScheme) => Object.keys(SCREENS).map((screen) => ({ screen, colorScheme })))
    const today = day % 2 === 0 ? { screen: 'phone', colorScheme: 'dark' } : { screen: 'desktop', colorScheme: 'light' }
    for (const { screen, colorScheme } of inAllThemes ? themes : [today])
      await checkRun(
        await open(`run-${screen}-${colorScheme}`, html, { ...SCREENS[screen], colorScheme }),
        `${screen}, ${colorScheme}`,
        check,
        inAllThemes ? folder : null,
      )
    run(['dist/cli/main.js', 'report', dir, '--diff', dir, '--out', join(scratch, 'diff.html')])
    await checkComparison(open, readFileSync(join(scratch, 'diff.html'), 'utf8'), check, folder)
    await checkInPage(browser, scratch, check)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  return failed.length
}

/** What is seen of the lines of the program, as `file.mjs:12`. */
const placesIn = (driver, selector) =>
  driver.page.evaluate(
    (where) =>
      [...document.querySelectorAll(`${where} code, ${where} .place, ${where} .from`)]
        .filter((e) => e.offsetParent !== null)
        .flatMap((e) => e.textContent.match(/[\w.-]+\.mjs:\d+/) ?? []),
    selector,
  )

/** The rows of the timeline with a part above or below them, or with less than half of their width for the title. */
const tornRows = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('.timeline .row')]
      .filter((row) => {
        const box = row.getBoundingClientRect()
        const title = row.querySelector('.title')
        const parts = [...row.children].filter((part) => part.offsetParent !== null).map((part) => part.getBoundingClientRect())
        const isCut = title.scrollWidth > title.clientWidth && title.clientWidth < 0.3 * box.width
        return isCut || parts.some(({ top, bottom, height }) => height > 0 && (top < box.top || bottom > box.bottom))
      })
      .map((row) => row.textContent),
  )

async function checkRun(driver, on, check, folder) {
  const { page } = driver
  // Pictures take half of the time.
  const shot = async (name) => folder === null || (await page.screenshot({ path: `${folder}/run-${name}-${on.replace(', ', '-')}.png` }))
  const first = await driver.scriptTime()
  check(`${on}: the first view takes at most ${FIRST_VIEW} ms of script`, first <= FIRST_VIEW, `${first.toFixed(0)} ms`)
  check(`${on}: nothing is cut off at the right`, !(await driver.overflows()))
  const torn = await tornRows(page)
  check(`${on}: each row of the timeline is one line, whose title can be read`, torn.length === 0, torn.slice(0, 3).join('; '))
  await shot('first')
  const missed = []
  for (const [name, line] of plantedLines()) {
    const wanted = `situations.mjs:${line}`
    await page.locator('.chip[data-kind=all]').click()
    if ((await placesIn(driver, '.finding')).includes(wanted)) continue
    await page.locator(`.chip[data-kind="${KINDS[name] ?? name}"]`).click()
    if ((await placesIn(driver, '.finding')).includes(wanted)) continue
    missed.push(name)
  }
  check(`${on}: each of the ${plantedLines().size} situations names its line after one click at most`, missed.length === 0, missed.join(', '))
  let most = 0
  for (const kind of ['break', 'recompile', 'refused fusion', 'memory peak', 'slow kernel', 'failure']) {
    await page.locator(`.chip[data-kind="${kind}"]`).click()
    const [place] = await placesIn(driver, '.finding')
    await page.locator('.finding').first().click()
    await driver.settle()
    check(`${on}: a second click shows the details of a ${kind}, with its line`, (await placesIn(driver, '#panel')).includes(place), place)
    await shot(kind.replace(' ', '-'))
    most = Math.max(most, await driver.elements)
    check(`${on}: and nothing is cut off`, !(await driver.overflows()))
    await driver.press('Escape')
  }
  check(`${on}: Escape closes the details`, !(await page.locator('#side').isVisible()))
  await checkStages(driver, on, check, shot)
  most = Math.max(most, await driver.elements)
  check(`${on}: at most ${MOST_ELEMENTS} elements`, most <= MOST_ELEMENTS, `${most}`)
  await page.close()
}

async function checkStages(driver, on, check, shot) {
  const { page } = driver
  const row = await page.evaluate(() => {
    const [{ rows, graphs }] = JSON.parse(document.querySelector('#data').textContent)
    return rows.findIndex(({ kind, graph }) => kind === 'compile' && graphs[graph].stages.some(({ title }) => title === 'backward'))
  })
  await driver.visit(`#run=0&row=${row}`)
  const titles = await page.locator('.steps button').allInnerTexts()
  const wanted = ['captured', 'joint', 'forward', 'lower', 'fuse', 'planMemory', 'emit', 'assemble', 'backward']
  check(
    `${on}: the stages of a training graph can be stepped through`,
    wanted.every((title) => titles.includes(title)),
    titles.join(', '),
  )
  for (let i = 0; i < 2; i++) await page.locator('[data-step=next]').click()
  await driver.settle()
  check(`${on}: forward is shown against joint`, /against joint: \d+ lines differ/.test(await page.locator('.stage-head').innerText()))
  check(
    `${on}: with what was taken out, and lines of the program`,
    (await page.locator('.stage-lines .removed').count()) > 0 && (await placesIn(driver, '.stage-lines')).length > 0,
  )
  await shot('stages')
  const { hash } = new URL(page.url())
  await driver.visit(hash)
  check(`${on}: the address of a row shows it again`, (await page.locator('.steps button').count()) === titles.length, hash)
  await driver.press('Escape')
}

async function checkComparison(open, html, check, folder) {
  const driver = await open('run-diff', html, SCREENS.desktop)
  const { page } = driver
  check('two runs stand beside each other', (await page.locator('.run').count()) === 2)
  check('a run does not differ from itself', (await page.locator('.totals b').count()) === 0 && (await page.locator('.finding .badge').count()) === 0)
  check('two runs: nothing is cut off', !(await driver.overflows()))
  await page.screenshot({ path: `${folder}/run-diff.png` })
  await page.close()
}

/** A page that traces itself, and saves its report. */
async function checkInPage(browser, scratch, check) {
  const contents = `import { compile, torch } from 'tensorfx'
import { downloadReport, trace } from 'tensorfx/debug/trace'
const t = trace()
const f = compile((x) => { const y = torch.relu(x); return y.sum().item() > 0 ? y.mul(2) : y })
f(torch.ones([4]))
f(torch.ones([4]))
globalThis.save = () => downloadReport({ name: 'mine.html' })
globalThis.ready = true`
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: 'js' },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    logLevel: 'error',
    tsconfigRaw: {},
  })
  const page = await browser.newPage({ acceptDownloads: true })
  page.on('pageerror', ({ message }) => check(`a page that traces itself: ${message}`, false))
  await page.route('http://localhost/**', (route) =>
    route.fulfill(
      route.request().url().endsWith('.js')
        ? { contentType: 'text/javascript', body: outputFiles[0].text }
        : { contentType: 'text/html', body: '<!doctype html><script type="module" src="program.js"></script>' },
    ),
  )
  await page.goto('http://localhost/')
  await page.waitForFunction('globalThis.ready === true', undefined, { timeout: 20_000 })
  const [download] = await Promise.all([page.waitForEvent('download'), page.evaluate('save()')])
  const html = readFileSync(await download.path(), 'utf8')
  check(
    'a page saves the report of its own run',
    download.suggestedFilename() === 'mine.html' && html.includes('graph break: the value of a tensor is read'),
  )
  check('without source lines, unless it asks for them', !html.includes('torch.relu(x); return'))
  await page.close()
}
