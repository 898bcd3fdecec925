// What checks of pages ask of a page: where nodes are, what is drawn, how much the page's program works, and fingers.
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

export const SCREENS = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
}

/** A page in the browser, and what is asked of it. */
export class Driver {
  /** Writes the page to a file and opens it. `fail` is told of errors of its program, and of requests to anywhere. */
  static async open(browser, file, html, options, fail) {
    writeFileSync(file, html)
    const page = await browser.newPage(options)
    page.on('pageerror', (error) => fail(`an error: ${error.message}`))
    page.on('request', (request) => /^(file|data|blob):/.test(request.url()) || fail(`a request to ${request.url()}`))
    const client = await page.context().newCDPSession(page)
    // The processor's time, which other programs on the machine do not lengthen.
    await client.send('Performance.enable', { timeDomain: 'threadTicks' })
    const driver = new Driver(page, client, pathToFileURL(file).href)
    await driver.visit()
    return driver
  }

  constructor(page, client, address) {
    this.page = page
    this.client = client
    this.address = address
  }

  /** Opens the page afresh at an address within it. */
  async visit(hash = '') {
    await this.page.goto('about:blank')
    await this.page.goto(this.address + hash)
    await this.settle()
  }

  /** Waits until what was asked for is drawn. */
  async settle() {
    await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
  }

  /** Milliseconds of script since the page was opened. */
  async scriptTime() {
    const { metrics } = await this.client.send('Performance.getMetrics')
    return 1000 * metrics.find(({ name }) => name === 'ScriptDuration').value
  }

  /** The box of a node in the window. */
  boxOf(name) {
    return this.page.evaluate((node) => globalThis.graphPage.boxOf(node)?.toJSON() ?? null, name)
  }

  get scale() {
    return this.page.evaluate(() => globalThis.graphPage.scale)
  }

  get selected() {
    return this.page.evaluate(() => globalThis.graphPage.selected)
  }

  /** How many boxes there are, of nodes and of closed modules. */
  get shown() {
    return this.page.evaluate(() => globalThis.graphPage.shown)
  }

  get elements() {
    return this.page.evaluate(() => document.querySelectorAll('*').length)
  }

  async click(name) {
    const { x, y, width, height } = await this.boxOf(name)
    await this.page.mouse.click(x + width / 2, y + height / 2)
    await this.settle()
  }

  async press(key) {
    await this.page.keyboard.press(key)
    await this.settle()
  }

  async button(id) {
    await this.page.locator(`#${id}`).click()
    await this.settle()
  }

  /** How many of the nodes lie in the canvas as a whole. */
  inView(names) {
    return this.page.evaluate((all) => {
      const canvas = document.querySelector('#canvas').getBoundingClientRect()
      const isIn = (b) =>
        b !== null && b.left >= canvas.left - 0.5 && b.top >= canvas.top - 0.5 && b.right <= canvas.right + 0.5 && b.bottom <= canvas.bottom + 0.5
      return all.filter((name) => isIn(globalThis.graphPage.boxOf(name))).length
    }, names)
  }

  /** The share of the canvas that something is drawn on. */
  drawnShare() {
    return this.page.evaluate(() => {
      const canvas = document.querySelector('#canvas')
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
      let drawn = 0
      for (let i = 3; i < data.length; i += 4) if (data[i] > 0) drawn++
      return (4 * drawn) / data.length
    })
  }

  /** Whether a visible control is cut off at the right, or the page scrolls sideways. */
  overflows() {
    return this.page.evaluate(() => {
      const controls = [...document.querySelectorAll('button, input, select, h1')].filter(
        (e) => e.offsetParent !== null && e.closest('#code, #panel') === null,
      )
      const cut = controls.some((e) => e.getBoundingClientRect().right > innerWidth + 0.5 || e.getBoundingClientRect().left < -0.5)
      return cut || document.documentElement.scrollWidth > innerWidth || document.body.scrollWidth > innerWidth
    })
  }

  /** Turns the wheel over the middle of the canvas, there and back. Returns the milliseconds of script for a step. */
  async wheel(steps) {
    await this.#overCanvas()
    return await this.#perStep(steps, (i) => this.page.mouse.wheel(0, i % 2 === 0 ? 60 : -60))
  }

  /** Drags the canvas. Returns the milliseconds of script for a step. */
  async drag(steps) {
    const [x, y] = await this.#overCanvas()
    await this.page.mouse.down()
    const time = await this.#perStep(steps, (i) => this.page.mouse.move(x + 10 * (i + 1), y + 6 * (i + 1)))
    await this.page.mouse.up()
    return time
  }

  async #overCanvas() {
    const { x, y, width, height } = await this.page.locator('#canvas').boundingBox()
    // A place without a box, so that a drag begins on the ground or on a node alike.
    const middle = [x + width / 2, y + height / 2]
    await this.page.mouse.move(...middle)
    return middle
  }

  /** The median, which a garbage collection in one of the steps does not change. */
  async #perStep(steps, act) {
    const times = []
    for (let i = 0; i < steps; i++) {
      const before = await this.scriptTime()
      await act(i)
      await this.settle()
      times.push((await this.scriptTime()) - before)
    }
    return times.sort((a, b) => a - b)[Math.floor(steps / 2)]
  }

  /** Two fingers, which move apart along a line through the middle of the canvas: `apart` pixels at first, and three times that at the end. */
  async pinch(apart) {
    const { x, y, width, height } = await this.page.locator('#canvas').boundingBox()
    const [cx, cy] = [x + width / 2, y + height / 2]
    const fingers = (d) => [-1, 1].map((side, id) => ({ x: cx + (side * d) / 2, y: cy, id }))
    const send = (type, touchPoints) => this.client.send('Input.dispatchTouchEvent', { type, touchPoints })
    await send('touchStart', fingers(apart))
    for (const factor of [1.5, 2, 2.5, 3]) await send('touchMove', fingers(apart * factor))
    await send('touchEnd', [])
    await this.settle()
  }

  async download(id) {
    const [download] = await Promise.all([this.page.waitForEvent('download'), this.page.locator(`#${id}`).click()])
    return { name: download.suggestedFilename(), path: await download.path() }
  }
}
