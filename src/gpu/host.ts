// Carries out requests on the GPU that this thread has, one after the other. A GPU that was lost is asked for again by the next request, and programs are made again there.
import { InternalError } from '../errors/index.ts'
import { countsNow, requestDevice } from './device.ts'
import type { KernelTime } from './clock.ts'
import type { Device, InitOptions } from './device.ts'
import { DeviceProgram } from './program.ts'
import type { CreateRequest, DeviceAnswer, DeviceRequest, LoseRequest, RunRequest } from './requests.ts'

const NONE: DeviceAnswer['words'] = []

/** The GPU, and programs on it by their numbers. */
export class DeviceHost {
  #options: InitOptions = {}
  #device: Device | null = null
  readonly #sources = new Map<number, CreateRequest>()
  readonly #programs = new Map<number, DeviceProgram>()
  #times: readonly KernelTime[] = []
  #isLostNext = false
  #last: Promise<unknown> = Promise.resolve()

  /** Answers a request after those before it. Throws UnsupportedError, DeviceError and DeviceLostError. */
  async answer(request: DeviceRequest): Promise<DeviceAnswer> {
    const answer = this.#last.then(async () => this.#carryOut(request))
    this.#last = answer.catch(() => undefined)
    const words = await answer
    const times = request.kind === 'profile' ? this.#times : []
    return { words, stats: countsNow(), description: this.#device?.description ?? '', times }
  }

  async #carryOut(request: DeviceRequest): Promise<DeviceAnswer['words']> {
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
        for (const program of this.#programs.values()) program.destroy()
        this.#programs.clear()
        return this.#lose({ kind: 'lose', when: 'now' })
    }
  }

  async #ready(): Promise<Device> {
    if (this.#device !== null && this.#device.lost === null) return this.#device
    for (const program of this.#programs.values()) program.destroy()
    this.#programs.clear()
    this.#device = await requestDevice(this.#options)
    return this.#device
  }

  async #create(request: CreateRequest): Promise<void> {
    this.#sources.set(request.program, request)
    try {
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
    const made = await DeviceProgram.create(device, source.dispatches, source.words)
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
    for (const { start, words } of uploads) program.upload(start, words)
    for (const { dispatch, at, bits } of numbers) program.setNumber(dispatch, at, bits)
    if (this.#isLostNext) {
      this.#isLostNext = false
      this.#device?.gpu.destroy()
    }
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
