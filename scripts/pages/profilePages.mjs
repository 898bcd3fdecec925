// Drives the pages of profiles: a flame graph and a timeline of memory.
import { mkdirSync } from 'node:fs'
import { nn, optim, torch } from 'tensorfx'
import { memoryTimeline, profile } from 'tensorfx/debug'
import { Driver, SCREENS } from './driver.mjs'

const MOST_ELEMENTS = 1_500
/** Milliseconds of script until the page is seen. */
const FIRST_VIEW = 1_000

/** Returns the number of failures. Leaves the pages and their pictures in `folder`. */
export async function checkProfilePages(browser, folder, { inAllThemes = true } = {}) {
  mkdirSync(folder, { recursive: true })
  const failed = []
  const check = (what, ok, figure = '') => {
    console.log(`${ok ? 'ok    ' : 'FAILED'} page of a profile: ${what}${figure === '' ? '' : ` (${figure})`}`)
    if (!ok) failed.push(what)
  }
  const open = (name, html, options) => Driver.open(browser, `${folder}/${name}.html`, html, options, (what) => check(`${name}: ${what}`, false))
  const model = new nn.Sequential(
    ...[...Array(6).keys()].flatMap((i) => [new nn.Conv2d(i === 0 ? 3 : 8, 8, 3, { padding: 1 }), new nn.BatchNorm2d(8), new nn.ReLU()]),
    new nn.Flatten(),
    new nn.Linear(8 * 256, 10),
  )
  const optimizer = new optim.Adam(model.parameters())
  const x = torch.randn([4, 3, 16, 16])
  const step = () => {
    optimizer.zeroGrad()
    model(x).square().mean().backward()
    optimizer.step()
  }
  const pages = {
    flame: profile(step, { warmup: 2, runs: 3 }).flamePage({ title: 'A step of training' }),
    memory: memoryTimeline(step, { warmup: 2, runs: 2 }).page({ title: 'Two steps of training' }),
  }
  for (const [name, html] of Object.entries(pages))
    for (const [screen, size] of Object.entries(SCREENS))
      for (const colorScheme of inAllThemes ? ['light', 'dark'] : [screen === 'phone' ? 'dark' : 'light']) {
        const driver = await open(`profile-${name}`, html, { ...size, colorScheme })
        const on = `${name}, ${screen}, ${colorScheme}:`
        const first = await driver.scriptTime()
        check(`${on} the first view takes at most ${FIRST_VIEW} ms of script`, first <= FIRST_VIEW, `${first.toFixed(0)} ms`)
        check(`${on} at most ${MOST_ELEMENTS} elements`, (await driver.elements) <= MOST_ELEMENTS, `${await driver.elements}`)
        check(`${on} nothing is cut off at the right`, !(await sideways(driver)))
        await driver.page.screenshot({ path: `${folder}/profile-${name}-${screen}-${colorScheme}.png` })
        await driver.page.close()
      }
  await checkFlames(await open('profile-flame', pages.flame, SCREENS.desktop), check)
  await checkMemory(await open('profile-memory', pages.memory, SCREENS.desktop), check)
  return failed.length
}

/** Whether the page scrolls sideways. */
const sideways = (driver) => driver.page.evaluate(() => document.documentElement.scrollWidth > innerWidth)

async function checkFlames({ page }, check) {
  const detail = () => page.locator('#detail').innerText()
  const width = (text) =>
    page
      .locator('.frame', { hasText: text })
      .first()
      .evaluate((frame) => frame.getBoundingClientRect().width)
  check('flame: it opens with everything', (await detail()).startsWith('all'))
  const all = await width('all')
  const before = await width('backward')
  await page.locator('.frame.backward').click()
  const after = await width('backward')
  const isWhole = before < all && after === all && (await detail()).startsWith('backward')
  check('flame: a click shows a frame at full width', isWhole, `${before.toFixed(0)} to ${after.toFixed(0)} of ${all.toFixed(0)} pixels`)
  await page.keyboard.press('ArrowDown')
  check('flame: arrow keys go inside', !/^(backward|all)/.test(await detail()), (await detail()).split('\n')[0])
  await page.keyboard.press('Escape')
  await page.keyboard.press('/')
  await page.keyboard.type('conv2d')
  check(
    'flame: a search counts what it finds',
    /^6 frames, \d+\.\d%$/.test(await page.locator('#hits').innerText()),
    await page.locator('#hits').innerText(),
  )
  check('flame: what is found is marked', (await page.locator('.frame.hit').count()) > 0)
  await page.locator('#reset').click()
  check('flame: Reset shows everything', (await detail()).startsWith('all') && (await page.locator('.frame.hit').count()) === 0)
  await page.close()
}

async function checkMemory({ page }, check) {
  const legend = () => page.locator('#legend').innerText()
  check('memory: it opens at the peak', /at the peak/.test(await legend()))
  for (const owner of ['activation', 'parameter', 'gradient', 'optimizer state'])
    check(`memory: ${owner} has an area`, (await legend()).includes(owner))
  const box = await page.locator('#chart').boundingBox()
  await page.mouse.move(box.x + 100, box.y + 100)
  check('memory: the mouse shows another moment', /after /.test(await legend()))
  await page.locator('#by').selectOption('module')
  check('memory: by module', /Sequential\.\d/.test(await legend()))
  check('memory: the table has who held memory', (await page.locator('#owners tbody tr').count()) > 5)
  await page.close()
}
