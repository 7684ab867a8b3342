package source

import "context"

// seek moves a subscription to where the read starts. One that was created a moment
// ago may not be known everywhere yet, which each allows for.
func (s *startup) seek(ctx context.Context, c *candidate) error {
	c.act = seeking
	to, _ := s.config.StartPosition.SeekTime()
	return s.calls.seek(ctx, c.Name, to)
}
