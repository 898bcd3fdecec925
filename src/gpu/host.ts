// Carries out requests on the GPU that this thread has, one after the other. A GPU that was lost is asked for again by the next request, and programs are made again there.
import { InternalError } from '../errors/index.ts'
import { Batch } from './batch.ts'
import { countsNow, requestDevice } from './device.ts'
import type { KernelTime } from './clock.ts'
import type { Device, InitOptions } from './device.ts'
import { DeviceHeap, heapLost } from './heap.ts'
import type { Slabs } from './heap.ts'
import { DeviceProgram } from './program.ts'
import type { CallRequest, CreateRequest, DeviceAnswer, DeviceRequest, HeapMemory, LoseRequest, RunRequest, WordRange } from './requests.ts'

const NONE: DeviceAnswer['words'] = []

/** The GPU, and programs on it by their numbers. */
export class DeviceHost {
  #options: InitOptions = {}
  #device: Device | null = null
  readonly #sources = new Map<number, CreateRequest>()
  readonly #programs = new Map<number, DeviceProgram>()
  #times: readonly KernelTime[] = []
  #heap: DeviceHeap | null = null
  #batch: Batch | null = null
  /** A program without kernels, which reads the memory of tensors. */
  #copier: DeviceProgram | null = null
  #isLostNext = false
  /** How many requests there are that have not begun. */
  #ahead = 0
  #last: Promise<unknown> = Promise.resolve()

  /** Answers a request after those before it. Throws UnsupportedError, DeviceError and DeviceLostError. */
  async answer(request: DeviceRequest): Promise<DeviceAnswer> {
    this.#ahead++
    const begun = this.#last.then(async () => {
      this.#ahead--
      return this.#begin(request)
    })
    this.#last = begun.catch(() => undefined)
    const words = await (await begun).ended
    const times = request.kind === 'profile' ? this.#times : []
    return { words, stats: countsNow(), description: this.#device?.description ?? '', limits: this.#device?.limits ?? null, times }
  }

  /** Carries out a request, but for a call, which waits for others where there are some: they become one submission. */
  async #begin(request: DeviceRequest): Promise<{ readonly ended: Promise<DeviceAnswer['words']> }> {
    if (request.kind === 'call') {
      const { ended } = await this.#call(request)
      if (this.#ahead === 0 || this.#batch?.isFull === true) await this.#batch?.submit()
      return { ended }
    }
    await this.#batch?.submit()
    const words = await this.#carryOut(request)
    return { ended: Promise.resolve(words) }
  }

  async #carryOut(request: Exclude<DeviceRequest, CallRequest>): Promise<DeviceAnswer['words']> {
    switch (request.kind) {
      case 'open':
        this.#options = request.options
        await this.#ready()
        return NONE
      case 'create':
        await this.#create(request)
        return NONE
      case 'run':
        return this.#run(request)
      case 'write':
        ;(await (await this.#heapOf(request.heap)).hold(request.heap)).upload(request)
        return NONE
      case 'read':
        return request.heap === null ? NONE : this.#read(await (await this.#heapOf(request.heap)).hold(request.heap), request.reads)
      case 'release':
        this.#sources.delete(request.program)
        this.#programs.get(request.program)?.destroy()
        this.#programs.delete(request.program)
        return NONE
      case 'lose':
        return this.#lose(request)
      case 'profile':
        return this.#profile(request.isOn)
      case 'close':
        this.#clear()
        return this.#lose({ kind: 'lose', when: 'now' })
    }
  }

  async #ready(): Promise<Device> {
    if (this.#device !== null && this.#device.lost === null) return this.#device
    this.#clear()
    this.#device = await requestDevice(this.#options)
    return this.#device
  }

  #clear(): void {
    this.#batch?.destroy(heapLost())
    this.#batch = null
    for (const program of this.#programs.values()) program.destroy()
    this.#programs.clear()
    this.#heap?.slabs.destroy()
    this.#copier?.destroy()
    this.#copier = null
  }

  /** The memory of tensors. Throws DeviceLostError if it was lost; memory of a higher number is new. */
  async #heapOf({ number }: HeapMemory): Promise<DeviceHeap> {
    const device = await this.#ready()
    if (this.#heap === null || number > this.#heap.number) {
      this.#heap?.slabs.destroy()
      this.#heap = new DeviceHeap(number, device)
    }
    if (this.#heap.number !== number || this.#heap.slabs.device !== device) throw heapLost()
    return this.#heap
  }

  /** Begins a call: it runs with others of the batch, or, where each is looked at, at once. */
  async #call({
    heap: memory,
    program: number,
    uniforms,
    bindings,
    copies,
  }: CallRequest): Promise<{ readonly ended: Promise<DeviceAnswer['words']> }> {
    const heap = await this.#heapOf(memory)
    // What makes programs or moves the memory comes after the calls that use them.
    if (!heap.holds(memory) || !this.#programs.has(number)) await this.#batch?.submit()
    const program = await this.#programOf(number)
    const bound = program.bound(await heap.hold(memory), bindings, copies)
    const { device } = program
    if (this.#isLostNext || device.clock !== null || device.options.check === 'kernel') {
      await this.#batch?.submit()
      program.setUniforms(uniforms)
      this.#loseNext()
      return { ended: Promise.resolve(await program.run(0, program.dispatches.length, [], bound)) }
    }
    this.#batch ??= new Batch(device)
    const ended = this.#batch.add(program, bound, uniforms).then(() => NONE)
    ended.catch(() => undefined)
    return { ended }
  }

  async #read(memory: Slabs, reads: readonly WordRange[]): Promise<DeviceAnswer['words']> {
    this.#copier ??= await DeviceProgram.create(memory.device, [], [])
    return this.#copier.run(0, 0, reads, this.#copier.bound(memory, '', []))
  }

  #loseNext(): void {
    if (!this.#isLostNext) return
    this.#isLostNext = false
    this.#device?.gpu.destroy()
  }

  async #create(request: CreateRequest): Promise<void> {
    this.#sources.set(request.program, request)
    try {
      if (request.onHeap !== null) await this.#heapOf(request.onHeap)
      await this.#programOf(request.program)
    } catch (error) {
      this.#sources.delete(request.program)
      throw error
    }
  }

  async #programOf(number: number): Promise<DeviceProgram> {
    const device = await this.#ready()
    const known = this.#programs.get(number)
    if (known !== undefined) {
      // The map is in the order of last use.
      this.#programs.delete(number)
      this.#programs.set(number, known)
      return known
    }
    const source = this.#sources.get(number)
    if (source === undefined) throw new InternalError(`the GPU was asked for program ${number}, which was not made`)
    this.#makeRoom(device, source.dispatches.length)
    const made = await DeviceProgram.create(device, source.dispatches, source.slabs, source.bindings, source.copies)
    for (const upload of source.uploads) made.upload(upload)
    this.#programs.set(number, made)
    return made
  }

  /**
   * Drops the programs that ran longest ago, so that with `kernels` more no more than the GPU may keep are there; their next run makes them again. A program holds its pipelines, and a driver
   * that computes on the CPU has a megabyte of code for each, while the graphs that a program drops are only collected when it yields.
   */
  #makeRoom(device: Device, kernels: number): void {
    let kept = kernels
    for (const program of this.#programs.values()) kept += program.dispatches.length
    for (const [number, program] of this.#programs) {
      if (kept <= device.kernels) return
      if (program.isWithinCall) continue
      kept -= program.dispatches.length
      program.destroy()
      this.#programs.delete(number)
    }
  }

  async #run({ program: number, uploads, numbers, from, to, reads }: RunRequest): Promise<DeviceAnswer['words']> {
    const program = await this.#programOf(number)
    for (const upload of uploads) program.upload(upload)
    for (const { dispatch, at, bits } of numbers) program.setNumber(dispatch, at, bits)
    this.#loseNext()
    return program.run(from, to, reads)
  }

  async #profile(isOn: boolean): Promise<DeviceAnswer['words']> {
    const device = await this.#ready()
    if (isOn) device.startClock()
    this.#times = isOn ? [] : device.stopClock()
    return NONE
  }

  async #lose({ when }: LoseRequest): Promise<DeviceAnswer['words']> {
    if (when === 'next run') this.#isLostNext = true
    else {
      this.#device?.gpu.destroy()
      await this.#device?.gpu.lost
    }
    return NONE
  }
}
