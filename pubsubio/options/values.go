package options

// Disabled, as the value of a duration, turns the setting off where its comment
// says that it can be.
const Disabled = -1

// Unbounded, as the value of a number, removes the bound where the setting's
// comment says that it can be.
const Unbounded = -1
