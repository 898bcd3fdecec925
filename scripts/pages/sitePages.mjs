// Drives the site from a disk, without a network, at three widths, light and dark: nothing is cut off, the search forgives typing errors and finds every public name, every export of every
// entry has a page that leads to its source, and the playground does what playgroundPages.mjs asks of it.
import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { playgroundExamples } from '../site/playground.mjs'
import { Playground, butNot, checkActions, checkExamples, checkMore } from './playgroundPages.mjs'

const SCREENS = {
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  tablet: { viewport: { width: 768, height: 1024 } },
  desktop: { viewport: { width: 1280, height: 800 } },
}
const PAGES = [
  'playground-examples',
  'index',
  'start',
  'guide/compile',
  'api/index',
  'api/nn',
  'api/nn/Linear',
  'operators',
  'operators/torch.relu',
  'errors/TFX_SHAPE',
  'flows/index',
  'flows/compile-first-call',
  'changelog',
  'playground',
]

/** Names as users mistype them, and what the search has to find first. */
const MISTYPED = {
  symbolicTrcae: 'symbolicTrace',
  Liner: 'Linear',
  TFX_SHPAE: 'TFX_SHAPE',
  'torch.reul': 'torch.relu',
  'debuging a compile': 'Debugging a compile',
  replacePatern: 'replacePattern',
}

/** Whether something reaches over the right edge of the window. */
const overflows = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth || document.body.scrollWidth > innerWidth)

/** Whether every diagram, however wide, begins in view. */
const showsFirstFunctions = () =>
  [...document.querySelectorAll('.drawing')].every((frame) => {
    const [first, inside] = [frame.querySelector('a'), frame].map((one) => one.getBoundingClientRect())
    return first.left >= inside.left && first.right <= inside.right
  })

/** Returns the number of failures. `site` is the folder of the site, pictures go to `folder`. `chosen`: whether the example of a name runs this time. */
export async function checkSite(browser, site, folder, { root, chosen }) {
  mkdirSync(folder, { recursive: true })
  const failed = []
  const check = (what, ok, figure = '') => {
    if (!ok) failed.push(what)
    if (!ok || figure !== '') console.log(`${ok ? 'ok    ' : 'FAILED'} site: ${what}${figure === '' ? '' : ` (${figure})`}`)
  }
  const addressOf = (name, hash = '') => pathToFileURL(join(site, `${name}.html`)).href + hash
  const context = async (options) => {
    const one = await browser.newContext(options)
    await one.setOffline(true)
    one.on('request', (request) => /^(?:file|data|blob):/.test(request.url()) || check(`a request to ${request.url()}`, false))
    one.on('weberror', (error) => check(`an error on ${error.page()?.url()}: ${error.error().message}`, false))
    return one
  }

  // Screens have contexts of their own, which take turns at the processor.
  const onScreens = (drive) => Promise.all(Object.entries(SCREENS).map(([screen, size]) => drive(screen, size)))

  // —— looks
  await onScreens(async (screen, size) => {
    const one = await context({ ...size, colorScheme: screen === 'tablet' ? 'dark' : 'light' })
    const page = await one.newPage()
    for (const name of PAGES) {
      await page.goto(addressOf(name))
      check(`${name} does not scroll sideways on a ${screen}`, !(await overflows(page)))
      check(`${name} shows the first function of each diagram on a ${screen}`, await page.evaluate(showsFirstFunctions))
      if (screen !== 'tablet' && (name === 'index' || name === 'guide/compile')) {
        await page.screenshot({ path: join(folder, `${screen}-${name.replace('/', '-')}.png`) })
      }
    }
    await one.close()
  })
  check(`${PAGES.length} pages fit ${Object.keys(SCREENS).length} screens`, true, 'no sideways scrolling')

  // —— the search and the playground, by finger and by mouse
  const { own, guides } = playgroundExamples(root)
  await onScreens(async (screen, size) => {
    const one = await context({ ...size, colorScheme: screen === 'tablet' ? 'dark' : 'light' })
    const page = await one.newPage()
    await page.goto(addressOf('api/nn'))
    await checkSearch(page, screen, check)
    const playground = new Playground(page, addressOf, (what, ok, figure) => check(`${what} (${screen})`, ok, figure))
    await checkActions(playground, own)
    await page.click('#tab-graph')
    check(`the playground fits a ${screen}`, !(await overflows(page)))
    await page.frameLocator('#panel-graph iframe').locator('#search').waitFor()
    await page.screenshot({ path: join(folder, `${screen}-playground.png`) })
    if (screen === 'desktop') {
      await checkMore(playground, own)
      await checkExamples(playground, guides, chosen)
    }
    await one.close()
  })

  // —— public names
  const names = await context(SCREENS.desktop)
  await checkNames(await names.newPage(), { root, site, addressOf, check, chosen })
  await names.close()
  return failed.length
}

async function checkSearch(page, screen, check) {
  for (const [typed, wanted] of Object.entries(MISTYPED)) {
    await page.fill('#search', typed)
    const first = await page.evaluate(() => document.querySelector('#results a')?.firstChild?.textContent ?? 'nothing')
    check(`the search finds ${wanted} for ${typed}, not ${first}, on a ${screen}`, first === wanted)
  }
  await page.fill('#search', 'symbolicTrcae')
  if (screen === 'desktop') await page.press('#search', 'Enter')
  else await page.locator('#results a').first().click()
  await page.waitForURL(/symbolicTrace\.html/)
  check(
    `the search forgives ${Object.keys(MISTYPED).length} typing errors, and leads to the page (${screen})`,
    (await page.textContent('h1')) === 'symbolicTrace',
    'found first',
  )
}

/**
 * Every export of every entry has a page with a link to the line of its source, and stands in the index of the search, as every name of the public surface does. Names that are chosen are
 * typed, too.
 */
async function checkNames(page, { root, site, addressOf, check, chosen }) {
  const { modules, symbols } = JSON.parse(readFileSync(join(site, '.model/model.json'), 'utf8'))
  const byId = new Map(symbols.map((symbol) => [symbol.id, symbol]))
  const entries = modules.filter((module) => module.entries.length > 0)
  const exported = entries.flatMap(({ exports }) =>
    exports.filter(({ symbol }) => symbol !== null).map(({ name, symbol }) => ({ name: name === 'default' ? byId.get(symbol).name : name, symbol })),
  )
  await page.goto(addressOf('api/nn'))
  const index = await page.evaluate(() => globalThis.searchIndex.map(([name, , address]) => [name, address]))
  const pagesOf = new Map()
  for (const [name, address] of index) pagesOf.set(name, [...(pagesOf.get(name) ?? []), address.split('#')[0]])
  const texts = new Map()
  const textOf = (file) => {
    if (!texts.has(file)) texts.set(file, readFileSync(join(site, file), 'utf8'))
    return texts.get(file)
  }
  const without = exported.filter(({ name, symbol }) => {
    const { module, line } = byId.get(symbol)
    return !(pagesOf.get(name) ?? []).some((file) => textOf(file).includes(`source/${module}.html#L${line}"`))
  })
  check(
    `every export has a page that leads to its source${butNot(without.map(({ name, symbol }) => `${name} of ${symbol}`))}`,
    without.length === 0,
    `${exported.length} exports of ${entries.length} entries`,
  )

  const surfaces = join(root, 'test/goldens/public-surface')
  const surface = readdirSync(surfaces).flatMap((file) =>
    [...readFileSync(join(surfaces, file), 'utf8').matchAll(/^(?:class|function|interface|type|const) (\w+)(?![\w.])/gm)].map(([, name]) => name),
  )
  const names = [...new Set([...exported.map(({ name }) => name), ...surface])].toSorted()
  const missing = names.filter((name) => !pagesOf.has(name))
  check(`the search knows every public name${butNot(missing)}`, missing.length === 0)
  const typed = names.filter(chosen)
  const lost = await page.evaluate((all) => {
    const field = document.getElementById('search')
    return all.filter((name) => {
      field.value = name
      field.dispatchEvent(new Event('input'))
      return ![...document.querySelectorAll('#results a')].some((link) => link.firstChild.textContent === name)
    })
  }, typed)
  check(`a public name that is typed is found${butNot(lost)}`, lost.length === 0, `${typed.length} of ${names.length} were typed`)
}
