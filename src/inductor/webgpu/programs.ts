// The numbers of programs, by which the thread that has the GPU knows them.
let programs = 0

/** A new number. */
export const nextProgram = (): number => programs++
