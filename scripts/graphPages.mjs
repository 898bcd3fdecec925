// Drives the HTML page of a graph, and that of a difference, in a browser: layout, search, modules, the panel, the code. Part of npm run test:browser.
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { fx, nn, torch } from 'tensorfx'
import { fuse } from 'tensorfx/fx/experimental'
import { ShapeProp } from 'tensorfx/fx/passes'
import { graphPage } from 'tensorfx/fx/viewer'

class Block extends nn.Module {
  constructor(channels) {
    super()
    this.conv = new nn.Conv2d(channels, channels, 3, { padding: 1 })
    this.bn = new nn.BatchNorm2d(channels)
    this.relu = new nn.ReLU()
  }

  forward(x) {
    return this.relu.call(this.bn.call(this.conv.call(x)).add(x))
  }
}

class Net extends nn.Module {
  constructor() {
    super()
    this.stem = new nn.Conv2d(3, 8, 3, { padding: 1 })
    this.blocks = new nn.Sequential(new Block(8), new Block(8))
    this.fc = new nn.Linear(8, 4)
  }

  forward(x) {
    return this.fc.call(this.blocks.call(this.stem.call(x)).mean([2, 3]))
  }
}

/** Whether two boxes of nodes lie over each other. */
const overlapping = (boxes) =>
  boxes.some((a, i) => boxes.some((b, j) => i < j && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height))

const DESKTOP = { viewport: { width: 1280, height: 860 } }
const PHONE = { viewport: { width: 390, height: 760 }, hasTouch: true, isMobile: true }

/** How many of the elements lie in the canvas as a whole. */
async function inView(page, selector) {
  const canvas = await page.locator('#canvas').boundingBox()
  const boxes = await page.locator(selector).evaluateAll((all) => all.map((e) => e.getBoundingClientRect().toJSON()))
  const { x, y, width, height } = canvas
  return boxes.filter((b) => b.left >= x && b.top >= y && b.right <= x + width && b.bottom <= y + height).length
}

const scaleOf = async (page) => Number(/scale\((.*)\)/.exec(await page.locator('#canvas svg > g').getAttribute('transform'))[1])

/** Two fingers, which move apart along a line through the middle of the canvas: `apart` pixels at first, and three times that at the end. */
async function pinch(page, apart) {
  const { x, y, width, height } = await page.locator('#canvas').boundingBox()
  const [cx, cy] = [x + width / 2, y + height / 2]
  const fingers = (d) => [-1, 1].map((side, id) => ({ x: cx + (side * d) / 2, y: cy, id }))
  const client = await page.context().newCDPSession(page)
  const send = (type, touchPoints) => client.send('Input.dispatchTouchEvent', { type, touchPoints })
  await send('touchStart', fingers(apart))
  for (const factor of [1.5, 2, 2.5, 3]) await send('touchMove', fingers(apart * factor))
  await send('touchEnd', [])
  await client.detach()
}

/** Returns the number of failures. Leaves the pages and their pictures in `folder`. */
export async function checkGraphPages(browser, folder) {
  const model = new Net()
  model.eval()
  const traced = fx.symbolicTrace(model)
  const fused = fuse(model)
  for (const gm of [traced, fused]) torch.noGrad(() => new ShapeProp(gm).propagate(torch.randn([1, 3, 8, 8])))
  let failures = 0
  const check = (what, ok) => {
    console.log(`${ok ? 'ok    ' : 'FAILED'} graph page: ${what}`)
    if (!ok) failures++
  }
  const open = async (name, html, options = DESKTOP) => {
    const file = `${folder}/${name}.html`
    writeFileSync(file, html)
    const page = await browser.newPage(options)
    page.on('pageerror', (error) => check(error.message, false))
    page.on('request', (request) => request.url().startsWith('file:') || check(`no request to ${request.url()}`, false))
    await page.goto(pathToFileURL(file).href)
    return page
  }

  const page = await open('graph', graphPage(traced))
  const boxes = () => page.locator('g.node').count()
  const count = traced.graph.nodes.length
  check(`${count} nodes are drawn`, (await boxes()) === count)
  const places = await page
    .locator('g.node > rect.box')
    .evaluateAll((rects) =>
      rects.map((r) => ({ x: r.x.baseVal.value, y: r.y.baseVal.value, width: r.width.baseVal.value, height: r.height.baseVal.value })),
    )
  check('no node lies over another', !overlapping(places))
  await page.locator('g[data-node="blocks_1_bn"]').click()
  const panel = await page.locator('#panel').innerText()
  const wanted = ['f32[1, 8, 8, 8]', 'blocks.1.bn', 'this.blocks[1].bn.call(', 'graphPages.mjs:', 'return this.relu.call(this.bn.call(']
  check(
    'a click shows shape, line and source',
    wanted.every((text) => panel.includes(text)),
  )
  await page.screenshot({ path: `${folder}/graph.png` })
  await page.locator('#close').click()
  check('closed modules are one box each', (await boxes()) === count - 8 + 1)
  await page.locator('#search').fill('relu')
  check('search finds nodes in closed modules', (await page.locator('#hits').innerText()) === '2 found')
  await page.locator('#search').press('Enter')
  check('Enter opens the module and selects the node', (await page.locator('#panel h2').innerText()) === 'blocks_0_relu')
  await page.locator('[data-tab=code]').click()
  await page.locator('#code div', { hasText: 'this.fc.call' }).click()
  await page.locator('[data-tab=panel]').click()
  check('a line of code selects its node', (await page.locator('#panel h2').innerText()) === 'fc')
  await page.close()

  const diff = await open('diff', graphPage(fused, { title: 'fuse', before: traced }))
  check('the difference shows what was removed', (await diff.locator('g.node.removed').count()) === 2)
  check('and what changed', (await diff.locator('header .changed').innerText()) === '2 changed')
  check('removed lines are struck out in the code', (await diff.locator('#code div.removed').count()) === 2)
  await diff.screenshot({ path: `${folder}/diff.png` })
  await diff.close()

  const chains = {
    'a chain of 20 steps': (x) => Array.from({ length: 20 }).reduce((y) => torch.relu(y), x),
    'a chain of 20 steps that all read the input': (x) => Array.from({ length: 20 }).reduce((y) => y.add(x), x),
    '30 steps side by side': (x) => torch.cat(Array.from({ length: 30 }, () => torch.relu(x))),
    'one step': (x) => torch.relu(x),
  }
  for (const [name, program] of Object.entries(chains)) {
    const gm = fx.symbolicTrace(program)
    const file = name.replaceAll(/[^a-z0-9]+/g, '-')
    for (const [device, options] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
      const view = await open(file, graphPage(gm, { title: name }), options)
      const on = `${name}, ${device}:`
      check(`${on} opens with its first node in view`, (await inView(view, 'g[data-node="x"]')) === 1)
      check(`${on} opens at a readable size`, (await scaleOf(view)) >= 0.7)
      await view.screenshot({ path: `${folder}/${file}-${device}.png` })
      await view.locator('#fit').click()
      check(`${on} Fit shows every node`, (await inView(view, 'g.node')) === gm.graph.nodes.length)
      await view.screenshot({ path: `${folder}/${file}-${device}-fit.png` })
      const fitted = await scaleOf(view)
      await view.locator('#in').click()
      const larger = await scaleOf(view)
      await view.locator('#out').click()
      await view.locator('#out').click()
      check(`${on} + and - zoom`, larger > fitted * 1.2 && (await scaleOf(view)) < fitted)
      if (device === 'phone') {
        const before = await scaleOf(view)
        await pinch(view, 60)
        const pinched = (await scaleOf(view)) / before
        check(`${on} two fingers zoom by as much as they move apart (${pinched.toFixed(2)})`, Math.abs(pinched - 3) < 0.3)
        check(`${on} and select no node`, (await view.locator('#panel h2').count()) === 0)
      }
      await view.close()
    }
  }

  const long = await open(
    'long',
    graphPage(
      fx.symbolicTrace((x) => Array.from({ length: 1000 }).reduce((y) => torch.relu(y.mul(2)), x)),
      { title: '2,000 nodes' },
    ),
  )
  check('2,000 nodes are drawn', (await long.locator('g.node').count()) === 2002)
  await long.locator('#fit').click()
  check('2,000 nodes: Fit shows every node', (await inView(long, 'g.node')) === 2002)
  await long.close()
  return failures
}
